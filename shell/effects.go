package shell

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/toold/toold/policy"
)

// effectSet are the effects of a script, each once. A hostile text has thousands of
// them, and they are large: they are in blocks, so that none is moved for another.
type effectSet struct {
	blocks [][]policy.Effect
	seen   map[uint64]struct{}
}

// The sizes of blocks.
const (
	firstBlock = 4
	mostBlock  = 512
)

// put adds an effect.
func (t *effectSet) put(e policy.Effect) {
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
func (t *effectSet) all() []policy.Effect {
	if len(t.blocks) == 1 {
		return t.blocks[0]
	}
	return slices.Concat(t.blocks...)
}

// seed makes it impossible to choose two effects with one hash.
var seed = sync.OnceValue(maphash.MakeSeed)

// hashOf returns what tells an effect apart from others. Its source does not count.
func hashOf(e *policy.Effect) uint64 {
	var h maphash.Hash
	h.SetSeed(seed())
	text := func(parts ...string) {
		for _, s := range parts {
			h.WriteString(s)
			h.WriteByte(0)
		}
	}
	marks := byte(e.Kind)
	for i, mark := range []bool{e.Tree, e.Possible, e.Unknown} {
		if mark {
			marks |= 16 << i
		}
	}
	h.WriteByte(marks)
	switch e.Kind {
	case policy.Net:
		text(e.Host, e.Scheme, e.Method, itoa(e.Port))
	case policy.Env:
		text(e.Name)
	case policy.Opaque:
		text(e.Why)
	case policy.Exec:
		for _, a := range e.Argv {
			text(a.Text)
			if a.Dynamic {
				h.WriteByte(1)
			}
			if a.Many {
				h.WriteByte(2)
			}
		}
		text("")
		text(e.Dirs...)
	default:
		text(e.Path, e.Part)
		if e.Canonical != e.Path {
			text(e.Canonical)
		}
	}
	return h.Sum64()
}

// add records an effect, once.
func (w *walker) add(e policy.Effect) {
	key := hashOf(&e)
	if _, have := w.found.seen[key]; have {
		return
	}
	w.found.seen[key] = struct{}{}
	w.found.put(e)
}

// opaque records that something cannot be known.
func (w *walker) opaque(why, source string) {
	w.add(policy.Effect{Kind: policy.Opaque, Why: why, Source: source})
}

// code records that a named program is given code, of which only what it does cannot be
// known.
func (w *walker) code(why, source string) {
	w.add(policy.Effect{Kind: policy.Opaque, Why: why, Source: source, Code: true})
}

// exec records that a command runs.
func (w *walker) exec(argv []policy.Word, s *state, source string) {
	w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Dirs: s.dirs, Source: source})
}

// exhausted records that the bounds of the analysis are used up.
func (w *walker) exhausted() { w.opaque("it holds too much to be followed", "") }
