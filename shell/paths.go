package shell

import (
	"cmp"
	"iter"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/proc"
	"github.com/toold/toold/shell/programs"
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
		w.unknownPath(o, s, source)
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
	for e, raw := range w.pathEffects(kindOf(o.Kind), text, s) {
		e.Tree, e.Part, e.Source = o.Tree, w.listing(o, e, s), source
		if o.Link && !strings.HasSuffix(text, "/") {
			e.Canonical = w.linkOutsideProc(e, raw)
		}
		if all && filepath.Dir(e.Path) == w.workspace {
			e = policy.Effect{Kind: policy.Write, Unknown: true, Tree: true, Source: source}
		}
		w.noteWrite(e, s)
		w.add(e)
		w.mayReplace(e, raw)
	}
}

// mayReplace reports that a program may replace the link that is the last component of a path which it writes.
func (w *walker) mayReplace(e policy.Effect, raw string) {
	if e.Kind != policy.Write || e.Canonical == e.Path || e.Unknown {
		return
	}
	if link := w.linkItself(raw); !slices.Contains([]string{"", e.Canonical, e.Path}, link) && !proc.Holds(link) {
		w.add(policy.Effect{Kind: policy.Write, Path: link, Canonical: link, Possible: true, Source: e.Source})
	}
}

func (w *walker) unknownPath(o programs.Operand, s *state, source string) {
	w.add(policy.Effect{Kind: kindOf(o.Kind), Unknown: true, Tree: o.Tree, Part: o.Part, Source: source})
	if o.Word.Dynamic && strings.Contains(o.Word.Text, "/") { // … is any name in that directory
		w.possible(kindOf(o.Kind), o.Word.Text+"…", s, source)
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

// pathEffects returns the effects on a path, each with the path as it was given, in which ".." follows links.
func (w *walker) pathEffects(kind policy.Kind, text string, s *state) iter.Seq2[policy.Effect, string] {
	return func(yield func(policy.Effect, string) bool) {
		if neutralPaths[text] {
			return
		}
		for _, raw := range s.named(text) {
			w.steps -= len(raw) / 96
			e := policy.Effect{Kind: kind, Path: filepath.Clean(raw), Canonical: w.canonicalPath(raw)}
			w.throughLinks(raw, s)
			more := false
			if below, ok := strings.CutPrefix(e.Canonical, proc.Dir); ok && proc.Holds(e.Canonical) {
				more = w.procEffects(kind, e.Path, below, s, yield)
			} else {
				more = yield(e, raw)
			}
			if !more || w.steps <= 0 {
				return
			}
		}
	}
}

func (w *walker) linkOutsideProc(e policy.Effect, raw string) string {
	if !strings.Contains(raw, "..") {
		raw = e.Path
	}
	if link := w.linkItself(raw); !proc.Holds(filepath.Dir(link)) {
		return link
	}
	return e.Canonical
}

// linkItself resolves a path, which need not be clean, but for a link that is its last component.
func (w *walker) linkItself(raw string) string {
	dir, name := path.Split(raw)
	if slices.Contains([]string{"", ".", ".."}, name) {
		return w.resolve(raw)
	}
	if dir = w.resolve(cmp.Or(strings.TrimSuffix(dir, "/"), "/")); dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

func (w *walker) procEffects(kind policy.Kind, asked, below string, s *state, yield func(policy.Effect, string) bool) bool {
	if !w.enter() {
		return false
	}
	defer w.leave()
	e := policy.Effect{Kind: kind, Path: asked}
	switch found, path := proc.Path(below); {
	case found == proc.Any:
		w.opaque("a path through /proc may lead to any file", asked)
	case found == proc.Input && kind == policy.Read, found == proc.Output && kind == policy.Write:
		return true // the open file was judged when it was opened
	case found == proc.Input || found == proc.Output:
		w.opaque("an open file is opened again, for something else", asked)
	case found == proc.Cwd && s.dirs == nil:
		e.Unknown = true
	case found == proc.Cwd || found == proc.Root:
		if found == proc.Root {
			path = "/" + path
		}
		for e := range w.pathEffects(kind, path, s) {
			if e.Path = asked; !yield(e, asked) {
				return false
			}
		}
		return true
	default:
		e.Canonical = path
	}
	return yield(e, asked)
}

// guardProc reports an unknown path or a tree that may reach any file through /proc.
func (w *walker) guardProc(o programs.Operand, s *state, source string) {
	if !o.Word.Dynamic && (!o.Tree || o.Part == policy.PartNames) {
		return
	}
	if slices.ContainsFunc(w.fromDirs(o.Word.Text, s), func(canonical string) bool {
		if o.Word.Dynamic {
			return proc.Holds(canonical) || proc.Begins(canonical)
		}
		return proc.Of(canonical) == proc.Directory
	}) {
		w.opaque("a path through /proc may lead to any file", source)
	}
}

func (w *walker) fromDirs(text string, s *state) (out []string) {
	for _, raw := range s.named(text) {
		if text != "" || proc.Holds(strings.TrimSuffix(raw, "/")) {
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
func (w *walker) canonicalPath(raw string) string { return proc.OfDevice(w.resolve(raw)) }

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
		return proc.Holds(dir)
	})
}

func mayMatch(pattern, name string) bool {
	ok, err := filepath.Match(pattern, name)
	return ok || err != nil
}
