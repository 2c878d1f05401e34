package shell

import (
	"io/fs"
	"slices"

	"github.com/toold/toold/shell/programs"
)

// links follows symbolic links that a script makes and moves. What is read through
// one is judged when it is made: its target, from where it is. Under another name
// it leads to what no question was about.
func (w *walker) links(c *programs.Command, s *state) {
	switch {
	case len(s.disk.made)+len(s.disk.moved) > maxLinks:
		w.opaque("it makes and moves too many symbolic links", "")
	case c.Name == "ln" && len(c.Operands) > 8*maxLinks:
		w.opaque("it makes too many symbolic links", "")
	case c.Name == "ln":
		s.disk.made = append(s.disk.made, w.operandPaths(c, s, func(o programs.Operand) bool { return o.Kind == programs.Write && !o.Tree })...)
	case c.Name == "mv" || c.Name == "cp" && slices.ContainsFunc([]string{"-r", "-d", "-P", "--no-dereference", "--preserve"}, c.MayHave):
		from := func(o programs.Operand) bool { return o.Link || o.Kind == programs.Read }
		if slices.ContainsFunc(w.operandPaths(c, s, from), func(path string) bool { return w.isLink(path, s) }) {
			s.disk.moved = append(s.disk.moved, w.operandPaths(c, s, func(o programs.Operand) bool { return !from(o) })...)
		}
	}
}

// operandPaths returns the paths that some of the operands name.
func (w *walker) operandPaths(c *programs.Command, s *state, of func(programs.Operand) bool) (out []string) {
	for _, o := range c.Operands {
		if o.Word.Dynamic || !of(o) {
			continue
		}
		for e := range w.pathEffects(kindOf(o.Kind), o.Word.Text, s) {
			out = append(out, e.Path)
		}
	}
	return out
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
