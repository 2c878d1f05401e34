package shell

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
	"github.com/toold/toold/shell/texts"
)

// disk is what a script may have changed on the disk so far. It only grows.
type disk struct {
	made  []string // symbolic links
	moved []string // possible new paths of links that existed before
	marks map[string]mark
	all   mark     // union of marks
	ran   bool     // a program that may have removed directories ran
	read  []string // system programs that the script may have copied
	count int      // number of changes other than made and moved
	code  bool     // a file that a program may run was written
}

type mark byte

const (
	writtenFile mark = 1 << iota
	writtenTree      // anything below may be written
	repository       // it may be created or changed as a repository
)

func (d *disk) changes() int { return d.count + len(d.made) + len(d.moved) }

func (d *disk) write(name string, tree bool) {
	if d.put(name, writtenFile); tree {
		d.put(name, writtenTree)
	}
	if i := strings.Index(name+"/", "/.git/"); i >= 0 && !strings.HasSuffix(name, ".lock") {
		d.put(name[:i], repository)
	}
	if base := path.Base(name); base == "HEAD" || base == "objects" {
		d.put(path.Dir(name), repository)
	}
}

func (d *disk) put(name string, m mark) {
	if d.marks == nil {
		d.marks = make(map[string]mark)
	}
	if d.marks[name]&m != m {
		d.marks[name] |= m
		d.all |= m
		d.count++
		d.code = d.code || m != repository && !prose().MatchString(name)
	}
}

// prose matches names of files that no program runs.
var prose = lazyregexp.New(`\.(?i:md|mdx|rst|adoc|json|csv|tsv|log|html?|css|svg)$`)

func (d *disk) reads(o programs.Operand) {
	if name, system := programs.System(o.Word.Text); system && name != o.Word.Text && o.Kind == programs.Read {
		joinList(&d.read, []string{name})
	}
}

func (d *disk) runs() {
	if !d.ran {
		d.ran, d.count = true, d.count+1
	}
}

func (d *disk) wrote(name string) bool {
	found := d.marks[name] != 0 && d.marks[name] != repository
	below := d.all&writtenTree != 0
	for ; below && !found && !listed("/ .", name); name = path.Dir(name) {
		found = d.marks[path.Dir(name)]&writtenTree != 0
	}
	return found
}

func (d *disk) mayBeRepository(dir string) bool {
	made := slices.Contains(d.made, dir) || slices.Contains(d.moved, dir) || d.marks[dir]&repository != 0
	return made || d.all&writtenTree != 0 && d.wrote(dir+"/.git")
}

func (d *disk) join(o *disk) (changed bool) {
	if d == o {
		return false
	}
	before := d.changes()
	for name, m := range o.marks {
		d.put(name, m)
	}
	if joinList(&d.made, o.made); o.ran {
		d.runs()
	}
	if o.code && !d.code {
		d.code, d.count = true, d.count+1
	}
	joinList(&d.moved, o.moved)
	joinList(&d.read, o.read)
	return d.changes() != before
}

// links follows links that a command creates or moves: rules did not judge their targets under the new names.
func (w *walker) links(c *programs.Command, s *state) {
	moves, copies := c.MovesFiles()
	switch {
	case len(s.disk.made)+len(s.disk.moved) > maxLinks, moves && len(c.Operands) > 8*maxLinks:
		w.opaque("it makes and moves too many symbolic links", "")
		return
	case !moves:
		return
	}
	from := func(o programs.Operand) bool { return o.Link || o.Kind == programs.Read }
	to := w.operandPaths(c, s, func(o programs.Operand) bool { return !from(o) && (c.Name != "ln" || !o.Tree) })
	moved := c.MovesAny()
	for _, tree := range w.operandPaths(c, s, from) {
		var over []string
		if copies {
			over = w.copied(tree, to, s)
		}
		links := len(to) > 0 && (w.isLink(tree, s) || w.holdsLinks(w.resolve(tree), over))
		moved = moved || links
	}
	if moved {
		s.disk.moved = append(s.disk.moved, to...)
	}
	if c.Name == "ln" {
		w.linked.Make(to)
		s.disk.made = append(s.disk.made, to...)
	}
}

// copied returns where a tree may be copied to. What the script wrote in the tree counts as written there too.
func (w *walker) copied(tree string, to []string, s *state) (over []string) {
	base := path.Base(tree)
	for i, name := range to {
		// The first entries are the destination itself, as a file and as a directory.
		if i < 4 || path.Base(name) == base {
			over = append(over, name, name+"/"+base)
		}
	}
	for name := range s.disk.marks {
		if len(over) > 0 && paths.Within(name, tree) {
			w.overLinks(over, strings.TrimPrefix(name, tree))
		}
	}
	return over
}

func (w *walker) operandPaths(c *programs.Command, s *state, of func(programs.Operand) bool) (out []string) {
	for _, o := range c.Operands {
		if o.Word.Dynamic || !of(o) {
			continue
		}
		for e, raw := range w.pathEffects(kindOf(o.Kind), o.Word.Text, s) {
			out = append(out, e.Path)
			if real := w.linkItself(strings.TrimRight(raw, "/")); real != e.Path {
				out = append(out, real)
			}
		}
	}
	return out
}

func (w *walker) isLink(path string, s *state) bool {
	mode, err := w.resolver.Mode(w.linkItself(path))
	return err == nil && mode&fs.ModeSymlink != 0 ||
		slices.ContainsFunc(slices.Concat(s.disk.made, s.disk.moved), func(link string) bool { return paths.Within(link, path) })
}

// holdsLinks reports whether a tree may contain symbolic links. over lists where its copies go.
func (w *walker) holdsLinks(tree string, over []string) (found bool) {
	if mode, err := w.resolver.Mode(tree); err != nil || !mode.IsDir() {
		return err == nil && mode&fs.ModeSymlink != 0
	}
	if w.steps < maxSteps/2 || strings.ContainsAny(tree, `*?[\`) {
		return true
	}
	for _, pattern := range []string{"/*", "/.*"} {
		names, complete := w.glob(tree + pattern)
		w.steps -= len(names) * (1 + len(over)) / 4
		found = found || !complete
		for _, name := range names {
			found = w.holdsLinks(name, w.overLinks(over, strings.TrimPrefix(name, tree))) || found
		}
	}
	return found
}

func (w *walker) overLinks(over []string, name string) []string {
	below := make([]string, len(over))
	for i, to := range over {
		below[i] = to + name
		if mode, err := w.resolver.Mode(below[i]); err == nil && mode&fs.ModeSymlink != 0 {
			w.opaque("it writes where a symbolic link leads", "")
		}
	}
	return below
}

// throughLinks reports a path that leads through a moved link, or by .. out of a new one.
func (w *walker) throughLinks(raw string, s *state) {
	for i := 1; i <= len(raw) && len(s.disk.made)+len(s.disk.moved) > 0 && w.steps > 0; i++ {
		if i < len(raw) && raw[i] != '/' {
			continue
		}
		name, real := path.Clean(raw[:i]), w.resolve(raw[:i])
		through := func(link string) bool { return paths.Within(name, link) || real != name && paths.Within(real, link) }
		if slices.ContainsFunc(s.disk.moved, through) || strings.HasPrefix(raw[i:], "/..") && slices.ContainsFunc(s.disk.made, through) {
			w.opaque("a symbolic link was made or moved, and leads elsewhere then", raw)
			return
		}
	}
}

// toolchain reports programs that rustup chooses by a file near the working directory.
func (w *walker) toolchain(name string, s *state, source string) {
	chosen := s.dirs == nil
	for _, dir := range s.dirs {
		for d := range paths.Up(w.resolve(dir)) {
			w.steps -= 2
			for _, file := range [...]string{filepath.Join(d, "rust-toolchain"), filepath.Join(d, "rust-toolchain.toml")} {
				chosen = chosen || w.exists(file) || s.disk.wrote(file)
			}
		}
	}
	if chosen {
		w.code("`"+name+"` runs what rust-toolchain.toml chooses, which may be a program of the project", source)
	}
}

// written reports a program that the script itself wrote, which may be a copy of a program that the script read.
func (w *walker) written(name string, obeyed bool, args []word, s *state, source string) {
	if s.disk.changes() == 0 || !slices.ContainsFunc(w.fromDirs(name, s), s.disk.wrote) {
		return
	}
	w.code("it runs a file that the script itself writes", source)
	w.scanKept(obeyed)
	for _, program := range s.disk.read {
		w.add(policy.Effect{Kind: policy.Exec, Argv: appendWords([]policy.Word{{Text: program}}, args), Dirs: s.dirs, Possible: true, Source: source})
	}
}

func (w *walker) noteWrite(e policy.Effect, s *state) {
	if e.Kind != policy.Write || e.Possible {
		return
	}
	if e.Unknown {
		s.disk.code = true
		return
	}
	s.disk.write(e.Path, e.Tree)
	s.disk.write(e.Canonical, e.Tree)
}

// variableRuns follows what programs may run because of a variable, if they see it.
func (w *walker) variableRuns(name string, v value, seen bool, s *state) {
	dangerous := policy.IsDangerousEnv(name)
	if dangerous {
		w.loads = true
		s.disk.runs() // other programs may remove directories
	}
	w.passes(v, seen, dangerous)
	function := strings.HasPrefix(name, "BASH_FUNC_")
	if function || oddLocale(name, v) || listed(parsingNames, name) {
		w.opaque("a shell reads a text otherwise by what "+name+" is", name)
	}
	w.fileOfGit(name, v, s)
	if commandInIndex().MatchString(v.text) {
		w.scan(v.text) // arithmetic would evaluate it
	}
	config := strings.HasPrefix(name, "GIT_CONFIG") && name != "GIT_CONFIG_NOSYSTEM"
	if config && !slices.Contains([]value{{}, {text: "/dev/null"}}, v) {
		w.opaque("the configuration of git is in a variable", name)
		v.text = strings.TrimPrefix(v.text, "!")
	}
	switch {
	case v.text == "" && v.known():
	case v.known() && (function || dangerous):
		w.scan(v.text)
		if _, alias := strings.CutPrefix(name, "CARGO_ALIAS_"); alias {
			v.text = "cargo " + v.text
		}
		w.mayRun(v.text, s)
	}
}

// passes notes a value that programs see, and may run. That of a dangerous variable is followed at once.
func (w *walker) passes(v value, seen, dangerous bool) {
	if !seen || dangerous {
		return
	}
	if v.known() && strings.Contains(v.text, " ") && len(w.passed) < texts.MaxScript {
		w.passed += v.text + "\n"
	}
}

var commandInIndex = lazyregexp.New("\\[.*(?:\\$\\(|`)")

func oddLocale(name string, v value) bool {
	plain := v.known() && plainLocale().MatchString(v.text)
	return !plain && listed("LANG LC_ALL LC_CTYPE", name)
}

func (w *walker) fileOfGit(name string, v value, s *state) {
	traces := strings.HasPrefix(name, "GIT_TRACE")
	switch {
	case v == (value{}), traces && v.known() && v.text[0] != '/':
	case traces, name == "GIT_INDEX_FILE":
		w.operandPath(programs.Operand{Word: policy.Word{Text: v.text, Dynamic: v.dynamic}, Kind: programs.Write}, s, name)
	case listed("GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_OBJECT_DIRECTORY", name):
		w.operandPath(programs.Operand{Word: policy.Word{Text: v.text, Dynamic: v.dynamic}, Kind: programs.Read, Tree: true}, s, name)
	}
}

// mayRun follows a text that a program may run. Only ask and deny rules see its effects. What it may write is marked
// on the disk.
func (w *walker) mayRun(text string, s *state) {
	printed := w.printed
	w.suspects++
	w.outputOf(func() { w.shell(text, nil, false, s, "") })
	w.suspects--
	w.printed = printed
}

// parsingNames are variables that change how shells parse text or match names. plainLocale matches harmless locales.
const parsingNames = "POSIXLY_CORRECT POSIX_PEDANTIC SHELLOPTS BASHOPTS BASH_COMPAT BASH_CMDS BASH_ALIASES PS4 GLOBIGNORE LOCPATH"

var plainLocale = lazyregexp.New(`^(?i:|C|POSIX|en_[A-Z]+|.*\.utf-?8)$`)
