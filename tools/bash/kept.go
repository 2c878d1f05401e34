package bash

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell"
	"github.com/toold/toold/shell/programs"
)

// Limits of the inspection. Beyond them the files count as lost.
const (
	maxRemoved      = 1 << 11 // files
	maxRemovedBytes = 32 << 20
	maxUnpacked     = 256 << 20 // size of unpacked git objects
	maxPatterns     = 1 << 22   // lines of .gitignore files; a negated pattern counts 17 times
)

// maybeMade lists directories that tools recreate. They count only if git ignores them.
const (
	maybeMade = " build dist out target bin obj coverage tmp .cache .venv venv vendor _build cmake-build-debug cmake-build-release site generated "
	madeEnds  = " .pyc .pyo .o .class .tmp "
)

// markKept marks commands that remove only what can be restored, that move files to a lasting path, or whose program
// does not exist.
func (t *tool) markKept(script string, effects []policy.Effect) {
	moved := t.movesWork(effects)
	elsewhere := slices.ContainsFunc(effects, setsPath)
	for i := range effects {
		e := &effects[i]
		if e.Kind != policy.Exec || len(e.Argv) == 0 {
			continue
		}
		c := programs.Parse(e.Argv)
		if c.Loses != "" && c.Opaque == "" && len(c.Sub) == 0 {
			again := len(e.Dirs) == 1 && !moved && t.keeps(&c, e.Dirs[0])
			e.Kept = again || onlyFresh(&c) || t.staysAfter(&c, e.Dirs, script, effects)
		}
		if c.Loses != "" || c.Leaves {
			e.Absent = !elsewhere && t.isAbsent(e.Argv[0])
		}
	}
}

// setsPath reports whether an effect may change where the shell searches programs.
func setsPath(e policy.Effect) bool {
	return e.Kind == policy.Env && (e.Name == "PATH" || e.Name == "")
}

// movesWork reports whether the script moves or links files that cannot be restored. Any path in the script may then
// be such a file.
func (t *tool) movesWork(effects []policy.Effect) bool {
	return slices.ContainsFunc(effects, func(e policy.Effect) bool {
		if e.Kind != policy.Exec || len(e.Argv) == 0 {
			return false
		}
		c := programs.Parse(e.Argv)
		gitMoves := c.Name == "git" && len(c.Words) > 0 && c.Words[0].Text == "mv"
		moves := c.Moves || c.Name == "ln" || gitMoves
		return moves && (len(e.Dirs) != 1 || !t.restores(&c, e.Dirs[0]))
	})
}

// restores reports whether all sources that a command moves exist and can be restored.
func (t *tool) restores(c *programs.Command, dir string) bool {
	l := t.removal()
	return !slices.ContainsFunc(c.Operands, func(o programs.Operand) bool {
		if !isSource(o) {
			return false
		}
		path := absolute(o.Word.Text, dir)
		_, err := os.Lstat(path)
		return o.Word.Dynamic || err != nil || !l.again(path, "")
	})
}

func absolute(path, dir string) string {
	if !filepath.IsAbs(path) {
		path = dir + "/" + path
	}
	return filepath.Clean(path)
}

// defaultPath is the search path of programs started without PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// isAbsent reports whether no directory in the search path has the program, and calls cannot add it. kill is also a
// builtin.
func (t *tool) isAbsent(program policy.Word) bool {
	o := t.options
	i := slices.IndexFunc(o.Env, func(entry string) bool { return strings.HasPrefix(entry, "PATH=/") })
	isName := !program.Dynamic && program.Text != "" && !strings.Contains(program.Text, "/")
	if i < 0 || !isName || program.Text == "kill" {
		return false
	}
	for _, dir := range filepath.SplitList(strings.TrimPrefix(o.Env[i], "PATH=") + ":" + defaultPath) {
		real := shell.Host().Canonical(dir)
		isKnown := filepath.IsAbs(dir) && real != ""
		if !isKnown || o.Profile.CanWrite(real) == nil || o.Profile.Scratch(real) {
			return false
		}
		if _, err := os.Lstat(filepath.Join(real, program.Text)); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// onlyFresh reports whether a command removes only files that this call created or that tools recreate.
func onlyFresh(c *programs.Command) bool {
	return c.Name == "rm" && len(c.Operands) > 0 && !slices.ContainsFunc(c.Operands, func(o programs.Operand) bool { return !o.Word.Fresh })
}

// keeps reports whether everything that a command overwrites, removes or moves can be restored.
func (t *tool) keeps(c *programs.Command, dir string) bool {
	l := t.removal()
	some := false
	for _, o := range c.Operands {
		counts := o.Kind == programs.Write
		if c.Moves {
			counts = isSource(o)
		}
		if !counts {
			continue
		}
		name := cmp.Or(o.Word.Dir, o.Word.Text) // for a pattern, its directory
		path := absolute(name, dir)
		isAll := path == "/" || path == t.options.Workspace && o.Part == ""
		unknown := o.Word.Dynamic && o.Word.Dir == ""
		if unknown || isAll || !l.again(path, strings.Trim(o.Part, programs.PartSome)) {
			return false
		}
		some = true
	}
	return some
}

func (t *tool) removal() removal {
	return removal{tool: t, files: maxRemoved, seen: 16 * maxRemoved, bytes: maxRemovedBytes, unpacked: maxUnpacked, patterns: maxPatterns, ignores: map[string]ignoreText{}}
}

type removal struct {
	tool     *tool
	files    int // remaining files to inspect
	seen     int // remaining files to visit
	bytes    int64
	unpacked int64
	patterns int // remaining lines of .gitignore files
	ignores  map[string]ignoreText
}

type ignoreText struct {
	text  []byte
	known bool
}

// again reports whether a path can be restored. For a directory this means all files below it whose names end in part,
// regardless of case, as with find -iname.
func (l *removal) again(path, part string) bool {
	if l.tool.options.Profile.Scratch(path) && !onHost(path) {
		return true
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true
	case err != nil:
		return false
	case !info.IsDir():
		return l.file(path, info)
	case l.isMade(path):
		return true
	}
	return l.below(path, strings.ToLower(part))
}

// below is again for the files in a directory.
func (l *removal) below(path, part string) bool {
	failed := errors.New("something is lost")
	err := filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		l.seen--
		switch {
		case err != nil:
			return err
		case l.seen < 0:
			return failed
		case d.IsDir() && at != path && l.isMade(at):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(strings.ToLower(at), part):
			return nil
		}
		info, err := d.Info()
		if err != nil || !l.file(at, info) {
			return failed
		}
		return nil
	})
	return err == nil
}

func (l *removal) file(path string, info fs.FileInfo) bool {
	if l.files--; l.files < 0 {
		return false
	}
	ends := strings.Contains(madeEnds, " "+filepath.Ext(path)+" ")
	switch {
	case info.Mode().IsRegular() && (info.Size() == 0 || ends):
		return true
	case !info.Mode().IsRegular():
		return false
	}
	if l.bytes -= info.Size(); l.bytes < 0 {
		return false
	}
	return l.tool.options.Masks.HeldByGit(path, &l.unpacked)
}

func (l *removal) isMade(path string) bool {
	name := filepath.Base(path)
	always := programs.MadeAgain(name)
	if !always && !strings.Contains(maybeMade, " "+name+" ") {
		return false
	}
	listed, included := l.ignored(path)
	return (always || listed) && !included
}

// ignored reports whether a .gitignore lists the directory without wildcards, and whether one includes it again, in
// any order. A directory is not listed if git does not have the content of one of these files, because an earlier call
// may have changed it.
func (l *removal) ignored(path string) (listed, included bool) {
	held := true
	for dir := range paths.Up(filepath.Dir(path)) {
		if included {
			break
		}
		rel, err := filepath.Rel(dir, path)
		file, read := l.ignores[dir]
		if !read {
			file.text, file.known = l.ignoreFile(dir + "/.gitignore")
			l.ignores[dir] = file
		}
		included = included || err != nil
		held = held && file.known
		for line := range bytes.Lines(file.text) {
			if l.patterns--; l.patterns < 0 {
				return false, true
			}
			pattern := strings.TrimSuffix(strings.TrimRight(string(line), " \r\n"), "/")
			if again, ok := strings.CutPrefix(pattern, "!"); ok {
				l.patterns -= 16
				included = included || l.patterns < 0 || includes(again, rel)
			} else if strings.TrimPrefix(pattern, "/") == rel || pattern == filepath.Base(path) {
				listed = true
			}
		}
		if _, err := os.Lstat(dir + "/.git"); err == nil {
			break
		}
	}
	return listed && held, included
}

// includes reports whether a negated pattern of a .gitignore may match a path or something below it.
func includes(pattern, path string) bool {
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	names := strings.Split(path, "/")
	slow := len(names) > 64 || strings.Count(pattern, "**") > 2
	return slow || matches(strings.Split(strings.TrimPrefix(pattern, "/"), "/"), names)
}

func matches(pattern, names []string) bool {
	switch {
	case len(names) == 0 || len(pattern) == 0:
		return len(names) == 0
	case pattern[0] == "**":
		deeper := len(names) > 1 && matches(pattern, names[1:])
		return deeper || len(pattern) == 1 || matches(pattern[1:], names)
	}
	// filepath.Match has no character classes such as [:alpha:].
	ok, err := filepath.Match(strings.ReplaceAll(pattern[0], "[!", "[^"), names[0])
	ok = ok || err != nil || strings.Contains(pattern[0], "[:")
	return ok && matches(pattern[1:], names[1:])
}

const maxIgnore = 64 << 10

// ignoreFile reads a .gitignore. It must be a regular file, because a call can create others. known means that it does
// not exist, or was read completely and git has its content.
func (l *removal) ignoreFile(path string) (text []byte, known bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	text, err = io.ReadAll(io.LimitReader(f, maxIgnore+1))
	known = err == nil && len(text) <= maxIgnore
	return text, known && l.tool.options.Masks.HeldByGit(path, &l.unpacked)
}

// ownScratch marks files in the call's private /tmp, so that no rule has to allow them. Paths that exist in the host's
// /tmp are not marked.
func (t *tool) ownScratch(effects []policy.Effect) {
	for i := range effects {
		e := &effects[i]
		isFile := e.Kind == policy.Read || e.Kind == policy.Write
		isDirect := !e.Unknown && e.Canonical == e.Path && t.options.Profile.Scratch(e.Path)
		if isFile && isDirect && !onHost(e.Path) {
			e.Possible = true
		}
	}
}

// onHost reports whether the path's first name below a directory for temporary files exists on the host, or cannot be
// checked.
func onHost(path string) bool {
	for _, dir := range []string{"/var/tmp/", "/tmp/"} {
		if rest, below := strings.CutPrefix(path, dir); below {
			first, _, _ := strings.Cut(rest, "/")
			_, err := os.Lstat(dir + first)
			return !os.IsNotExist(err)
		}
	}
	return true
}
