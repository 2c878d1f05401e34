package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// maxTurns is how many turns of a loop are followed before directories that change
// in it are unknown; all else is unknown as soon as it differs.
const maxTurns = 3

// maxUnrolled bounds the turns of nested loops over known words.
const maxUnrolled = 96

// loop is a loop being followed.
type loop struct {
	calls             int // functions around it
	breaks, continues *state
}

// turns follows a loop until another turn changes nothing. before runs at the start
// of each turn and after the last; after runs at the end of a turn. Either may be nil.
func (w *walker) turns(s *state, l *loop, before, body, after func(*state)) {
	l.calls = len(w.calls)
	w.loops = append(w.loops, l)
	defer func() { w.loops = w.loops[:len(w.loops)-1] }()
	for turn := 1; ; turn++ {
		in, dirs, changes := w.fork(s), s.dirs, s.disk.changes()
		if before != nil {
			before(in)
			in.settle()
		}
		out := w.fork(in)
		w.turn(in, l, body)
		if after != nil {
			after(in)
		}
		changed := w.join(s, in)
		if changed && turn >= maxTurns {
			s.widen(dirs)
		}
		if w.steps <= 0 || !changed && s.disk.changes() == changes {
			*s = *out
			break
		}
	}
	if l.breaks != nil {
		w.join(s, l.breaks)
	}
}

// turn follows the body of a loop once, to its end or to a continue.
func (w *walker) turn(s *state, l *loop, body func(*state)) {
	l.continues = nil
	body(s)
	s.settle()
	if l.continues != nil {
		w.join(s, l.continues)
	}
}

// forClause follows a loop over words or numbers.
func (w *walker) forClause(c *syntax.ForClause, s *state) {
	if c.Select {
		w.opaque("`select` is not followed", w.text(c))
		return
	}
	body := func(s *state) { w.stmts(c.Do, s) }
	switch l := c.Loop.(type) {
	case *syntax.CStyleLoop:
		evaluate := func(x syntax.ArithmExpr) func(*state) {
			return func(s *state) {
				if x != nil {
					w.arithmetic(x, s)
				}
			}
		}
		evaluate(l.Init)(s)
		w.turns(s, &loop{}, evaluate(l.Cond), body, evaluate(l.Post))
	case *syntax.WordIter:
		w.forWords(l, body, s)
	default:
		w.opaque("this form of loop is not followed", w.text(c))
	}
}

// forWords follows a loop over words: one by one if they are few and known.
func (w *walker) forWords(l *syntax.WordIter, body func(*state), s *state) {
	items := w.words(l.Items, s)
	if !l.InPos.IsValid() { // for x; do: over the positional parameters
		items = s.params.words
		if !s.params.known {
			items = []word{{dynamic: true, many: true}}
		}
	}
	unrolled := w.unrolled
	defer func() { w.unrolled = unrolled }()
	if w.unrolled = max(1, unrolled) * max(1, len(items)); len(items) > maxItems || w.unrolled > maxUnrolled {
		items = []word{{dynamic: true, many: true}}
		w.unrolled = unrolled
	}
	this := &loop{calls: len(w.calls)}
	for _, item := range items {
		v := item.value()
		set := func(s *state) { w.setVar(l.Name.Value, v, s, false) }
		if item.many || item.glob {
			w.turns(s, this, nil, func(s *state) { set(s); body(s) }, nil)
		} else {
			w.within(this, s, set, body)
		}
	}
	if this.breaks != nil {
		w.join(s, this.breaks)
	}
}

// within follows one turn of a loop over words.
func (w *walker) within(l *loop, s *state, set, body func(*state)) {
	w.loops = append(w.loops, l)
	set(s)
	w.turn(s, l, body)
	w.loops = w.loops[:len(w.loops)-1]
}

// leaveLoop follows break and continue.
func (w *walker) leaveLoop(name string, args []word, s *state, source string) {
	n := 1
	if len(args) > 0 && args[0].known() {
		n = atoi(args[0].text)
	}
	plain := len(args) == 0 || len(args) == 1 && args[0].known() && isInteger(args[0].text) && n > 0
	if len(w.loops) == 0 {
		return // an error that changes nothing, or the end of a process of its own
	}
	own := w.loops[len(w.loops)-1].calls == len(w.calls)
	if !plain || !own {
		for _, l := range w.loops {
			w.joinInto(&l.breaks, s)
			w.joinInto(&l.continues, s)
		}
		return
	}
	l := w.loops[w.outer(n)]
	if name == "break" {
		w.joinInto(&l.breaks, s)
	} else {
		w.joinInto(&l.continues, s)
	}
	s.dead = true
}

// outer is the index of the n-th loop from within, or the outermost one.
func (w *walker) outer(n int) int { return max(0, len(w.loops)-n) }

// joinInto adds a state to those that reach one point.
func (w *walker) joinInto(to **state, s *state) {
	if *to == nil {
		*to = w.fork(s)
		return
	}
	w.join(*to, s)
}
