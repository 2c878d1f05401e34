package shell

import (
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
	"github.com/toold/toold/shell/texts"
)

// neutralPaths discard what is written.
var neutralPaths = map[string]bool{
	"/dev/null": true, "/dev/tty": true, "/dev/zero": true, "/dev/random": true, "/dev/urandom": true, "/dev/full": true,
	procSubst: true, // no other process opens it; see redirect
}

// path adds the effect of a redirection. If only the prefix of the name is known, rules match that.
func (w *walker) path(kind programs.Kind, wd word, s *state, source string) {
	prefix := wd.prefix()
	if wd.glob && wd.text != "" {
		for _, match := range w.matches(nil, wd.text, s) {
			if !match.Dynamic {
				w.possible(kindOf(kind), match.Text, s, source)
			}
		}
	}
	dynamic := wd.dynamic || wd.glob
	w.operandPath(programs.Operand{Kind: kind, Word: policy.Word{Text: prefix, Dynamic: dynamic}}, s, source)
	if dynamic && strings.Contains(prefix, "/") {
		w.possible(kindOf(kind), prefix+"…", s, source)
	}
}

var sockets = []string{"/dev/tcp/", "/dev/udp/"}

func mayBeSocket(before string) bool {
	return slices.ContainsFunc(sockets, func(name string) bool { return strings.HasPrefix(before, name) || strings.HasPrefix(name, before) })
}

func kindOf(kind programs.Kind) policy.Kind {
	if kind == programs.Write {
		return policy.Write
	}
	return policy.Read
}

func (w *walker) operandPath(o programs.Operand, s *state, source string) {
	text := o.Word.Text
	w.guardProc(o, s, source)
	file := !slices.Contains([]string{"", "-"}, text)
	relative := len(s.dirs) == 0 && !strings.HasPrefix(text, "/")
	socket := slices.IndexFunc(sockets, func(name string) bool { return strings.HasPrefix(text, name) })
	switch {
	case o.Word.Dynamic || file && relative:
		w.add(policy.Effect{Kind: kindOf(o.Kind), Unknown: true, Tree: o.Tree, Part: o.Part, Source: source})
		return
	case socket >= 0:
		host, port, _ := strings.Cut(strings.TrimPrefix(text, sockets[socket]), "/")
		n, _ := strconv.Atoi(port)
		w.add(policy.Effect{Kind: policy.Net, Host: programs.CleanHost(host), Port: n, Source: source})
		return
	case !file:
		return
	}
	all := o.Kind == programs.Write && o.Tree && strings.HasSuffix(text, "*")
	for e := range w.pathEffects(kindOf(o.Kind), text, s) {
		e.Tree, e.Part, e.Source = o.Tree, w.listing(o, e, s), source
		if o.Link && !strings.HasSuffix(text, "/") && !inProc(w.resolve(filepath.Dir(e.Path))) {
			e.Canonical = w.linkItself(e.Path)
		}
		if all && filepath.Dir(e.Path) == w.workspace {
			e = policy.Effect{Kind: policy.Write, Unknown: true, Tree: true, Source: source}
		}
		w.noteWrite(e, s)
		w.add(e)
	}
}

// listing returns the Part of an operand. A path that is certainly no directory has only attributes to list.
func (w *walker) listing(o programs.Operand, e policy.Effect, s *state) string {
	whole := o.Tree || s.disk.wrote(e.Path) || s.disk.wrote(e.Canonical)
	if o.Part == policy.PartNames && !whole && w.isFile(e.Canonical) {
		return policy.PartAttributes
	}
	return o.Part
}

func (w *walker) pathEffects(kind policy.Kind, text string, s *state) iter.Seq[policy.Effect] {
	return func(yield func(policy.Effect) bool) {
		if neutralPaths[text] {
			return
		}
		for _, raw := range s.named(text) {
			if w.paths -= len(raw); w.paths <= 0 {
				w.exhausted()
				return
			}
			e := policy.Effect{Kind: kind, Path: filepath.Clean(raw), Canonical: w.canonicalPath(raw)}
			w.throughLinks(raw, s)
			more := false
			if below, ok := strings.CutPrefix(e.Canonical, procDir); ok && inProc(e.Canonical) {
				more = w.procEffects(kind, e.Path, below, s, yield)
			} else {
				more = yield(e)
			}
			if !more || w.steps <= 0 {
				return
			}
		}
	}
}

func (w *walker) linkItself(path string) string {
	dir := w.resolve(filepath.Dir(path))
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.Base(path))
}

// Names below /proc refer to the process that opens them, so the daemon cannot resolve them.

const procDir = "/proc"

type procKind int

const (
	procPlain     procKind = iota // the same file for every process
	procAny                       // may be any file of the machine
	procDirectory                 // has entries for files of processes
	procCwd
	procRoot
	procInput
	procOutput
)

var (
	procLinks = map[string]string{"thread-self": "self/task/self", "net": "self/net", "mounts": "self/mounts"}
	procOwn   = map[string]procKind{"cwd": procCwd, "root": procRoot, "fd/0": procInput, "fd/1": procOutput, "fd/2": procOutput}
)

// devLinks are names in /dev that lead into /proc, whether or not they are links on this machine.
var devLinks = map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"}

func inProc(canonical string) bool { return paths.Within(canonical, procDir) }

func procKindOf(canonical string) procKind {
	if !inProc(canonical) {
		return procPlain
	}
	kind, _ := procPath(strings.TrimPrefix(canonical, procDir))
	return kind
}

// procPath resolves a path below /proc. After procCwd and procRoot, path is relative to them.
func procPath(below string) (kind procKind, path string) {
	var names []string
	for rest := below; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		top := len(names) - 1
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && top < 0:
			return procRoot, rest
		case name == "..":
			names = names[:top]
			continue
		case procLinks[name] != "" && top < 0:
			rest = procLinks[name] + "/" + rest
			continue
		}
		names = append(names, name)
		switch kind = procName(names); {
		case kind == procCwd || kind == procRoot:
			return kind, strings.TrimLeft(rest, "/")
		case kind == procAny, rest != "" && (kind == procInput || kind == procOutput):
			return procAny, ""
		}
	}
	return procName(names), strings.Join(append([]string{procDir}, names...), "/")
}

func procName(names []string) procKind {
	if len(names) == 0 {
		return procDirectory
	}
	own := names[0] == "self"
	if !own && !texts.IsNumber(names[0]) {
		return procPlain
	}
	names = names[1:]
	for len(names) > 1 && names[0] == "task" {
		names = names[2:]
	}
	file := strings.Join(names, "/")
	switch {
	case file == "" || listed("fd map_files task", file):
		return procDirectory
	case own && procOwn[file] != procPlain:
		return procOwn[file]
	case listed("cwd root exe fd map_files", names[0]):
		return procAny
	}
	return procPlain
}

func (w *walker) procEffects(kind policy.Kind, asked, below string, s *state, yield func(policy.Effect) bool) bool {
	if !w.enter() {
		return false
	}
	defer w.leave()
	e := policy.Effect{Kind: kind, Path: asked}
	switch found, path := procPath(below); {
	case found == procAny:
		w.opaque("a path through /proc may lead to any file", asked)
	case found == procInput && kind == policy.Read, found == procOutput && kind == policy.Write:
		return true // the open file was judged when it was opened
	case found == procInput || found == procOutput:
		w.opaque("an open file is opened again, for something else", asked)
	case found == procCwd && s.dirs == nil:
		e.Unknown = true
	case found == procCwd || found == procRoot:
		if found == procRoot {
			path = "/" + path
		}
		for e := range w.pathEffects(kind, path, s) {
			if e.Path = asked; !yield(e) {
				return false
			}
		}
		return true
	default:
		e.Canonical = path
	}
	return yield(e)
}

// guardProc reports an unknown path or a tree that may reach any file through /proc.
func (w *walker) guardProc(o programs.Operand, s *state, source string) {
	if !o.Word.Dynamic && (!o.Tree || o.Part == policy.PartNames) {
		return
	}
	if slices.ContainsFunc(w.fromDirs(o.Word.Text, s), func(canonical string) bool {
		if o.Word.Dynamic {
			return inProc(canonical) || beginsProc(canonical)
		}
		return procKindOf(canonical) == procDirectory
	}) {
		w.opaque("a path through /proc may lead to any file", source)
	}
}

// beginsProc reports whether a path with this prefix may lead into /proc.
func beginsProc(canonical string) bool {
	proc := len(canonical) > 1 && strings.HasPrefix(procDir, canonical)
	return proc || len(canonical) > len("/d") && strings.HasPrefix("/dev/fd", canonical)
}

func (w *walker) fromDirs(text string, s *state) (out []string) {
	for _, raw := range s.named(text) {
		if text != "" || inProc(strings.TrimSuffix(raw, "/")) {
			w.throughLinks(raw, s)
			out = append(out, w.canonicalPath(raw))
		}
	}
	return out
}

func (s *state) named(text string) (raws []string) {
	if strings.HasPrefix(text, "/") {
		return []string{text}
	}
	for _, dir := range s.dirs {
		raws = append(raws, dir+"/"+text)
	}
	return raws
}

// canonicalPath replaces paths in /dev that lead into /proc.
func (w *walker) canonicalPath(raw string) string {
	canonical := w.resolve(raw)
	if !strings.HasPrefix(canonical, "/dev/") {
		return canonical
	}
	for name, target := range devLinks {
		if rest, ok := strings.CutPrefix(canonical, name); ok && (rest == "" || rest[0] == '/') {
			return target + rest
		}
	}
	return canonical
}

func (w *walker) globInProc(pattern string, s *state) bool {
	before := pattern[:strings.IndexAny(pattern+"*", `*?[\`)]
	before = before[:strings.LastIndexByte(before, '/')+1]
	first, more, _ := strings.Cut(strings.TrimPrefix(pattern, before), "/")
	dirs := s.dirs
	if before != "" {
		dirs = w.fromDirs(before, s)
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		switch dir {
		case "/":
			return strings.Contains(more, "/") && (mayMatch(first, "proc") || mayMatch(first, "dev"))
		case "/dev":
			return more != "" && mayMatch(first, "fd")
		}
		return inProc(dir)
	})
}

func mayMatch(pattern, name string) bool {
	ok, err := filepath.Match(pattern, name)
	return ok || err != nil
}
