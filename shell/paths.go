package shell

import (
	"iter"
	"path/filepath"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// neutralPaths can be read and written by everybody, and keep nothing.
var neutralPaths = map[string]bool{
	"/dev/null": true, "/dev/tty": true, "/dev/zero": true, "/dev/random": true, "/dev/urandom": true, "/dev/full": true,
	procSubst: true, // opened by nothing else: see redirect
}

// path records that a word is opened as a file.
func (w *walker) path(kind programs.Kind, wd word, s *state, source string) {
	w.operandPath(programs.Operand{Kind: kind, Word: policy.Word{Text: wd.text, Dynamic: wd.dynamic || wd.glob}}, s, source)
}

// mayBeSocket reports whether the known beginning of a redirection's target leaves
// room for /dev/tcp/host/port, which bash connects to.
func mayBeSocket(before string) bool {
	for _, name := range []string{"/dev/tcp/", "/dev/udp/"} {
		if strings.HasPrefix(before, name) || strings.HasPrefix(name, before) {
			return true
		}
	}
	return false
}

// kindOf is what an effect on an operand is.
func kindOf(kind programs.Kind) policy.Kind {
	if kind == programs.Write {
		return policy.Write
	}
	return policy.Read
}

// operandPath records that an operand is read or written.
func (w *walker) operandPath(o programs.Operand, s *state, source string) {
	text := o.Word.Text
	w.guardProc(o, s, source)
	if o.Word.Dynamic || !strings.HasPrefix(text, "/") && len(s.dirs) == 0 && text != "" && text != "-" {
		w.add(policy.Effect{Kind: kindOf(o.Kind), Unknown: true, Tree: o.Tree, Part: o.Part, Source: source})
		return
	}
	if text == "" || text == "-" {
		return
	}
	if host, ok := strings.CutPrefix(text, "/dev/tcp/"); ok {
		w.socket(host, source)
		return
	}
	if host, ok := strings.CutPrefix(text, "/dev/udp/"); ok {
		w.socket(host, source)
		return
	}
	for e := range w.pathEffects(kindOf(o.Kind), text, s) {
		e.Tree, e.Part, e.Source = o.Tree, o.Part, source
		if o.Link && !strings.HasSuffix(text, "/") && !inProc(w.resolve(filepath.Dir(e.Path))) {
			e.Canonical = w.linkItself(e.Path)
		}
		if o.Kind == programs.Write && o.Tree && strings.HasSuffix(text, "*") && filepath.Dir(e.Path) == w.workspace {
			e = policy.Effect{Kind: policy.Write, Unknown: true, Tree: true, Source: source}
		}
		w.noteWrite(e, s)
		w.add(e)
	}
}

// pathEffects resolves a literal path from every directory the shell may be in. There
// is none where the directory is not known, and for the path of a neutral device.
func (w *walker) pathEffects(kind policy.Kind, text string, s *state) iter.Seq[policy.Effect] {
	return func(yield func(policy.Effect) bool) {
		dirs := s.dirs
		if strings.HasPrefix(text, "/") {
			dirs = []string{""}
		}
		for i := 0; i < len(dirs) && !neutralPaths[text]; i++ {
			raw := dirs[i] + "/" + strings.TrimPrefix(text, "/")
			if w.paths -= len(raw); w.paths <= 0 {
				w.exhausted()
				return
			}
			e := policy.Effect{Kind: kind, Path: filepath.Clean(raw), Canonical: w.canonicalPath(raw)}
			w.throughMoved(e.Path, s)
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

// within reports whether a path is a directory or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// linkItself resolves all of a path but its last component: removing or renaming
// a link is about the link.
func (w *walker) linkItself(path string) string {
	dir := w.resolve(filepath.Dir(path))
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, filepath.Base(path))
}
