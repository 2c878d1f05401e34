package shell

import (
	"hash/maphash"
	"sync"

	"github.com/toold/toold/policy"
)

// effectSet are the effects of a script in their order, each once.
type effectSet struct {
	list []policy.Effect
	seen map[uint64]struct{}
}

// seed makes it impossible to choose two effects with one hash.
var seed = sync.OnceValue(maphash.MakeSeed)

// hashOf returns what makes an effect another than others. Its source does not count.
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
	w.found.list = append(w.found.list, e)
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
