package bash

import (
	"slices"

	"github.com/toold/toold/policy"
)

// told are the effects of a script. A hostile text has thousands of them, and they
// are large: they lie in blocks, so that none is moved for another.
type told struct {
	blocks [][]policy.Effect
	seen   map[effectKey]struct{} // those on paths, hosts and variables
}

// The sizes of blocks.
const (
	firstBlock = 4
	mostBlock  = 512
)

// put adds an effect.
func (t *told) put(e policy.Effect) {
	last := len(t.blocks) - 1
	if last < 0 || len(t.blocks[last]) == cap(t.blocks[last]) {
		size := firstBlock
		if last >= 0 {
			size = min(2*cap(t.blocks[last]), mostBlock)
		}
		t.blocks = append(t.blocks, make([]policy.Effect, 0, size))
		last++
	}
	t.blocks[last] = append(t.blocks[last], e)
}

// all returns the effects in their order.
func (t *told) all() []policy.Effect {
	if len(t.blocks) == 1 {
		return t.blocks[0]
	}
	return slices.Concat(t.blocks...)
}

// effectKey tells effects on paths, hosts and variables apart. It is small: a
// hostile text has thousands of them.
type effectKey struct {
	text, more              string
	port                    int
	kind                    uint8
	tree, possible, unknown bool
	same                    bool // more is text as well
}

// keyOf returns what tells an effect apart from others.
func keyOf(e policy.Effect) effectKey {
	key := effectKey{kind: uint8(e.Kind), tree: e.Tree, possible: e.Possible, unknown: e.Unknown}
	switch e.Kind {
	case policy.Net:
		key.text, key.more, key.port = e.Host, e.Scheme+" "+e.Method, e.Port
	case policy.Env:
		key.text = e.Name
	case policy.Opaque:
		key.text = e.Why
	default:
		if key.text, key.same = e.Path, e.Canonical == e.Path; !key.same {
			key.more = e.Canonical
		}
		if e.Part != "" {
			key.more += "\x00" + e.Part
		}
	}
	return key
}

// add records an effect; on paths and variables, once.
func (w *walker) add(e policy.Effect) {
	if e.Kind != policy.Exec {
		key := keyOf(e)
		if _, told := w.told.seen[key]; told {
			return
		}
		w.told.seen[key] = struct{}{}
	}
	w.told.put(e)
}

// opaque records that something cannot be known.
func (w *walker) opaque(why, source string) {
	w.add(policy.Effect{Kind: policy.Opaque, Why: why, Source: source})
}

// exec records that a command runs.
func (w *walker) exec(argv []policy.Word, s *state, source string) {
	w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Dirs: s.dirs, Source: source})
}

// exhausted records that the bounds of the analysis are used up.
func (w *walker) exhausted() { w.opaque("it holds too much to be followed", "") }
