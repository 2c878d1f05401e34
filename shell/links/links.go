// Package links knows what a script may write through the symbolic links that it makes.
//
// A link only names its target, which is written if the script also writes through a link. The order does
// not count, since parts of a script may run concurrently or again, nor does which of its links it is, since
// one may lead to another.
package links

import (
	"path"
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

// Begin announces the effects of an operand; making: of a command that makes links.
func (s *Set) Begin(o programs.Operand, making bool) { s.operand, s.making = o, making }

// Take notes an effect, and reports whether it is none as long as nothing is written through a link.
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

// Make notes that links are made at these paths. Where one may be already, a link to a directory, a file is
// made in its target.
func (s *Set) Make(at []string) {
	before := s.made
	for _, name := range at {
		if within(name, before) {
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
	if w.path == "" || within(w.path, s.made) {
		return true
	}
	for _, link := range s.made {
		if w.tree && inside(link, w.path) {
			return true
		}
	}
	return false
}

func within(name string, links []string) bool {
	for _, link := range links {
		if inside(name, link) {
			return true
		}
	}
	return false
}

// inside is paths.Within for file systems that take A and a for one name, too.
func inside(name, dir string) bool {
	return paths.Within(strings.ToLower(name), strings.ToLower(dir))
}
