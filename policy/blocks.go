package policy

import (
	"slices"
	"strings"
)

// A Block is what an asking or denying path rule says to one path. Defaults, presets and allowing rules make none.
type Block struct {
	Action Action // Ask or Deny
	Rule   string // its id
	Reason string
	Tree   bool // it says the same to all that is or will be below the path
}

// Blocks returns the strictest asking or denying rule about reading or writing a canonical path; false when there is none. Of
// rules that are as strict, one about all that is below counts. Built-in rules count only with builtin.
func (p *Policy) Blocks(kind Kind, path string, builtin bool) (b Block, ok bool) {
	e := Effect{Kind: kind, Path: path, Canonical: path}
	p.blockingPaths(e, func(r *rule, action Action, _ bool, _ []Word) {
		if r.NoMask || r.file == "" && !builtin {
			return
		}
		tree := r.isTree(path)
		if ok && (action > b.Action || action == b.Action && !tree) {
			return
		}
		b, ok = Block{Action: action, Rule: r.ID, Reason: r.Reason, Tree: tree}, true
	})
	return b, ok
}

// isTree reports whether the rule is about everything below path, without exception.
func (r *rule) isTree(path string) bool {
	excepts := slices.ContainsFunc(r.except, func(g glob) bool { return g.mayMeet(path) })
	return !excepts && slices.ContainsFunc(r.globs, func(g glob) bool { return g.covers(path) })
}

// mayMeet reports whether the pattern may match something below path, as far as its literal beginning shows.
func (g *glob) mayMeet(path string) bool {
	path = strings.TrimSuffix(g.folded(path), "/")
	return strings.HasPrefix(path+"/", g.prefix+"/") || strings.HasPrefix(g.prefix+"/", path+"/")
}

// BlocksBelow reports whether some asking or denying rule is about a place below path that a path of another name would not have:
// to move a directory there may change what is blocked in it. It returns that rule's id.
func (p *Policy) BlocksBelow(path string) (rule string, ok bool) {
	for _, s := range p.sets {
		for _, i := range s.blocks.find(path, true) {
			if r := s.blocks.rules[i]; !r.NoMask && (r.blocksBelow(Read, path) || r.blocksBelow(Write, path)) {
				return r.ID, true
			}
		}
	}
	return "", false
}

func (r *rule) blocksBelow(kind Kind, path string) bool {
	e := Effect{Kind: kind, Path: path, Canonical: path, Tree: true}
	return r.concerns(kind) && (r.reaches(path, e) || matchesGlob(r.globs, path))
}
