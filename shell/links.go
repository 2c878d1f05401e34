package shell

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
)

// links follows symbolic links that a script makes and moves. What is read through
// one is judged when it is made: its target, from where it is. Under another name
// it leads to what nobody was asked about.
func (w *walker) links(args []word, usage policy.Usage, s *state) {
	name, _ := systemProgram(args[0].text)
	switch {
	case len(s.disk.made)+len(s.disk.moved) > maxLinks:
		w.opaque("it makes and moves too many symbolic links", "")
	case name == "ln" && len(usage.Operands) > 8*maxLinks:
		w.opaque("it makes too many symbolic links", "")
	case name == "ln":
		s.disk.made = append(s.disk.made, w.operandPaths(usage, s, func(o policy.Operand) bool { return o.Kind == policy.Write && !o.Tree })...)
	case name == "mv" || name == "cp" && keepsLinks(args[1:]):
		from := func(o policy.Operand) bool { return o.Link || o.Kind == policy.Read }
		if slices.ContainsFunc(w.operandPaths(usage, s, from), func(path string) bool { return w.isLink(path, s) }) {
			s.disk.moved = append(s.disk.moved, w.operandPaths(usage, s, func(o policy.Operand) bool { return !from(o) })...)
		}
	}
}

// operandPaths returns the paths that some of the operands name.
func (w *walker) operandPaths(usage policy.Usage, s *state, of func(policy.Operand) bool) (out []string) {
	for _, o := range usage.Operands {
		if o.Word.Dynamic || !of(o) {
			continue
		}
		for e := range w.pathEffects(o.Kind, o.Word.Text, s) {
			out = append(out, e.Path)
		}
	}
	return out
}

// keepsLinks reports whether flags of cp may copy links as links.
func keepsLinks(args []word) bool {
	return slices.ContainsFunc(args, func(a word) bool {
		return a.dynamic && a.text == "" || strings.HasPrefix(a.text, "-") && strings.ContainsAny(a.text, "aRrdP")
	})
}

// isLink reports whether a path is a link, or holds one that the script has made.
func (w *walker) isLink(path string, s *state) bool {
	mode, err := w.resolver.Mode(w.linkItself(path))
	return err == nil && mode&fs.ModeSymlink != 0 ||
		slices.ContainsFunc(s.disk.made, func(link string) bool { return within(link, path) })
}

// throughMoved records that a path leads to, or through, a link that was moved.
func (w *walker) throughMoved(path string, s *state) {
	if slices.ContainsFunc(s.disk.moved, func(link string) bool { return within(path, link) }) {
		w.opaque("a symbolic link was moved, and leads elsewhere then", path)
	}
}
