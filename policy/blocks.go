package policy

import (
	"slices"
	"strings"
)

// A Block is the effect of an ask or deny path rule on a path. Defaults, presets and allow rules cause no Blocks.
type Block struct {
	Action Action // Ask or Deny
	Rule   string
	Reason string
	Tree   bool // the rule applies to everything below the path too
}

// Blocks returns the strictest ask or deny rule for reading or writing a canonical path, preferably one for everything
// below it. ok is false if there is none. Built-in rules count only if builtin is set.
func (p *Policy) Blocks(kind Kind, path string, builtin bool) (b Block, ok bool) {
	for _, m := range p.blockingPaths(Effect{Kind: kind, Path: path, Canonical: path}) {
		tree := m.isTree(path)
		skipped := m.NoMask || m.file == "" && !builtin
		better := m.result < b.Action || m.result == b.Action && tree
		if !skipped && (better || !ok) {
			b, ok = Block{Action: m.result, Rule: m.ID, Reason: m.Reason, Tree: tree}, true
		}
	}
	return b, ok
}

// isTree reports whether the rule applies to everything below path, without exception.
func (r *rule) isTree(path string) bool {
	excepts := slices.ContainsFunc(r.except, func(g glob) bool { return g.mayMeet(path) })
	return !excepts && slices.ContainsFunc(r.globs, func(g glob) bool { return g.covers(path) })
}

// mayMeet reports whether the literal prefix of the pattern lets it match path or something below it.
func (g *glob) mayMeet(path string) bool {
	path = strings.TrimSuffix(g.folded(path), "/")
	return strings.HasPrefix(path+"/", g.prefix+"/") || strings.HasPrefix(g.prefix+"/", path+"/")
}

// BlocksBelow returns the id of an ask or deny rule that matches path or selects something below it. Renaming a
// directory to or from such a path may change which rules apply in it. Exceptions do not count.
func (p *Policy) BlocksBelow(path string) (rule string, ok bool) {
	for _, s := range p.sets {
		for _, r := range s.blocks.find(true, path) {
			if !r.NoMask && (r.blocksBelow(Read, path) || r.blocksBelow(Write, path)) {
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
