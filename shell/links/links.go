// Package links finds what a script may write through the symbolic links that it makes.
//
// The target of a link counts as written if the script writes through any link that it makes: parts of a script may
// run concurrently or again, and one link may lead to another.
package links

import (
	"path"
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// Set is what a script does with links. The zero value is empty.
type Set struct {
	making  bool // the effects are those of a command that makes links
	operand programs.Operand

	targets []policy.Effect
	made    []string
	writes  []write
}

type write struct {
	path     string // "": any
	tree     bool
	possible bool
}

// Begin announces the effects of an operand. making means that its command makes links.
func (s *Set) Begin(o programs.Operand, making bool) { s.operand, s.making = o, making }

// Take adds an effect. It returns true for the target of a link, which is written only if Written returns it.
func (s *Set) Take(e policy.Effect) bool {
	link := s.operand.Link && !strings.HasSuffix(s.operand.Word.Text, "/")
	switch {
	case e.Kind == policy.Opaque: // it may write through any link
		s.writes = append(s.writes, write{possible: true})
	case e.Kind != policy.Write:
	case e.Unknown:
		s.writes = append(s.writes, write{possible: true})
	case s.making && s.operand.Role == programs.Target:
		s.targets = append(s.targets, e)
		return true
	case s.making: // see Make
	case link:
		s.writes = append(s.writes, write{path: path.Dir(e.Path), possible: e.Possible}, write{path: path.Dir(e.Canonical), possible: e.Possible})
	default:
		s.writes = append(s.writes, write{e.Path, e.Tree, e.Possible}, write{e.Canonical, e.Tree, e.Possible})
		if e.Tree { // it may be a copy, with the links in it
			s.writes = append(s.writes, write{possible: true})
		}
	}
	return false
}

// Make adds links at these paths. One below an earlier one may be made in the directory that the earlier one leads to.
func (s *Set) Make(at []string) {
	for _, name := range at {
		if isBelow(name, s.made) {
			s.writes = append(s.writes, write{path: name})
		}
	}
	s.made = append(s.made, at...)
}

// Written returns the targets that may be written.
func (s *Set) Written() []policy.Effect {
	reached, certain := false, false
	for i := 0; i < len(s.writes) && len(s.targets) > 0; i++ {
		if w := s.writes[i]; s.leads(w) {
			reached, certain = true, certain || !w.possible
		}
	}
	if !reached {
		return nil
	}
	for i := range s.targets {
		s.targets[i].Possible = s.targets[i].Possible || !certain
	}
	return s.targets
}

// leads reports whether something may be written through a link.
func (s *Set) leads(w write) bool {
	if w.path == "" || isBelow(w.path, s.made) {
		return true
	}
	return w.tree && slices.ContainsFunc(s.made, func(link string) bool { return within(link, w.path) })
}

func isBelow(name string, links []string) bool {
	return slices.ContainsFunc(links, func(link string) bool { return within(name, link) })
}

// within is paths.Within also for file systems that ignore case.
func within(name, dir string) bool {
	return paths.Within(strings.ToLower(name), strings.ToLower(dir))
}
