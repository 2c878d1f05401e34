package policy

import (
	"slices"
	"strings"
)

// A Block is the ask or deny path rule for a path. Defaults, presets and allow rules make none.
type Block struct {
	Action Action
	Rule   string
	Reason string
	Tree   bool // and everything below the path
}

// Blocks returns the strictest ask or deny rule for reading or writing a canonical path, preferably one for everything
// below.
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

func (r *rule) isTree(path string) bool {
	excepts := slices.ContainsFunc(r.except, func(g glob) bool { return g.mayMeet(path) })
	return !excepts && slices.ContainsFunc(r.globs, func(g glob) bool { return g.covers(path) })
}

// mayMeet reports whether the pattern may match below path, judging by its prefix.
func (g *glob) mayMeet(path string) bool {
	path = strings.TrimSuffix(g.folded(path), "/")
	return strings.HasPrefix(path+"/", g.prefix+"/") || strings.HasPrefix(g.prefix+"/", path+"/")
}

// BlocksBelow returns the id of an ask or deny rule that applies to a path below path because of its name.
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
