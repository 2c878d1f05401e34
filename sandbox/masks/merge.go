package masks

import (
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
)

// merge masks whole directories, except roots, while there are too many masks: otherwise a call that creates many
// files could block all later calls. It reports whether that sufficed.
func (b *builder) merge(c *compiled) bool {
	for total := len(b.reads) + len(b.fixed); total > Most; total = len(b.reads) + len(b.fixed) {
		dir := b.fullest(total - Most)
		if dir == "" {
			return false
		}
		b.cover(c, dir)
	}
	return true
}

// fullest returns the innermost directory with the fewest masks above excess, or else with the most; "" if none has
// two.
func (b *builder) fullest(excess int) (best string) {
	count := map[string]int{}
	for _, list := range [][]sandbox.Mask{b.reads, b.fixed} {
		for _, m := range list {
			for dir := paths.Above(m.Path); b.t.root(dir) != ""; dir = paths.Above(dir) {
				count[dir]++
			}
		}
	}
	better := func(dir string, n int) bool {
		most := count[best]
		switch {
		case n == most:
			return len(dir) > len(best) || len(dir) == len(best) && dir < best
		case n > excess:
			return most <= excess || n < most
		}
		return most <= excess && n > most
	}
	for dir, n := range count {
		if n > 1 && better(dir, n) {
			best = dir
		}
	}
	return best
}

// cover replaces the masks in a directory by one on the directory, with the strictest rule among them.
func (b *builder) cover(c *compiled, dir string) {
	var over *sandbox.Mask
	rest := func(list []sandbox.Mask) (left []sandbox.Mask, some bool) {
		for _, m := range list {
			if !paths.Below(m.Path, dir) {
				left = append(left, m)
				continue
			}
			delete(c.is, m.Path)
			some = true
			if over == nil || over.Ask && !m.Ask {
				over = &m
			}
		}
		return left, some
	}
	reads, hidden := rest(b.reads)
	fixed, _ := rest(b.fixed)
	m := sandbox.Mask{
		Path: dir, Is: stateOf(dir).file, Rule: over.Rule, Ask: over.Ask,
		Reason: "rules are about so many files that this directory is kept as a whole",
	}
	if b.reads, b.fixed = reads, fixed; hidden {
		b.reads, c.is[dir] = append(b.reads, m), m.Is
	} else {
		b.fixed = append(b.fixed, m)
	}
}
