package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/table"
	"github.com/toold/toold/shell/texts"
)

// call is a function being followed; a recursive one, until its entry and exit states no longer change.
type call struct {
	body     *syntax.Stmt
	entry    *state // state at the start of the body, for all its calls
	exit     *state // state at its end as far as followed; nil = not reached yet
	returns  *state // states of returns in this iteration
	recursed bool   // it has called itself
	again    bool   // entry or exit changed in this iteration
	apart    *call  // the same call, as seen from a separate process
}

func (w *walker) callFunction(body *syntax.Stmt, args []word, s *state, source string) {
	for _, c := range w.calls {
		if c.body == body {
			w.recurse(c, args, s)
			return
		}
	}
	if len(w.calls) >= maxInner {
		w.opaque("functions call each other too deeply", source)
		return
	}
	c := &call{body: body, entry: w.entry(args, s)}
	w.calls = append(w.calls, c)
	for turn := 1; ; turn++ {
		c.again, c.returns = false, nil
		in, before := w.fork(c.entry), s.disk.changes()
		w.stmt(body, in)
		in.settle()
		w.join(in, c.returns)
		w.leaveScope(in)
		changed := w.joinInto(&c.exit, in) || s.disk.changes() != before
		settled := !c.again && !changed
		if settled || !c.recursed || w.steps <= 0 {
			break
		}
		if turn >= maxTurns {
			c.entry.params, c.entry.dirs = params{}, nil
		}
	}
	w.calls = w.calls[:len(w.calls)-1]
	s.resume(c.exit)
}

func (w *walker) entry(args []word, s *state) *state {
	in := w.fork(s)
	in.params, in.locals = params{words: args, known: true}, table.New[local]()
	return in
}

func (s *state) resume(exit *state) {
	params, locals := s.params, s.locals
	*s = *exit
	s.params, s.locals = params, locals
}

func (w *walker) recurse(c *call, args []word, s *state) {
	for c.apart != nil {
		c = c.apart
	}
	c.recursed = true
	c.again = w.join(c.entry, w.entry(args, s)) || c.again
	if c.exit == nil {
		s.dead = true // the body ends first on a path without recursion
		return
	}
	s.resume(w.fork(c.exit))
}

func (w *walker) leaveFunction(args []word, s *state) {
	w.changes++
	if len(w.calls) == 0 {
		return // no effect outside of functions
	}
	c := w.calls[len(w.calls)-1]
	if c.apart != nil {
		s.dead = true // ends the subshell
		return
	}
	w.joinInto(&c.returns, s)
	if plainStatus(args) {
		s.dead = true
	}
}

func plainStatus(args []word) bool {
	if len(args) == 0 {
		return true
	}
	number := args[0].surelyNumber() || args[0].known() && texts.IsInteger(args[0].text)
	return number && len(args) == 1 && !args[0].many
}

// trap follows a trap, which may run at any later point of the script.
func (w *walker) trap(args []word, s *state, source string) {
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	} else if len(args) > 0 && args[0].known() && strings.HasPrefix(args[0].text, "-") {
		return
	}
	several := slices.ContainsFunc(args, word.several)
	if len(args) < 2 && !several {
		return
	}
	samples := texts.Made(args[0].sample)
	if args[0].known() {
		samples = []string{args[0].text}
	}
	if several || len(samples) == 0 {
		w.unknownCommand("`trap` runs a text known only when it runs", source)
		return
	}
	w.changes++
	s.traps = append(slices.Clip(s.traps), samples...)
	w.touched.armed = true
	if !slices.ContainsFunc(args[1:], func(signal word) bool { return !signal.known() || !listed("EXIT 0", signal.text) }) {
		return
	}
	// A signal must not change the state of what follows.
	changes := w.changes
	for _, text := range samples {
		w.runTrap(text, s)
	}
	if w.changes != changes {
		w.opaque("a trap changes what comes after it", source)
	}
}

func (w *walker) runTraps(s *state) {
	for i := 0; i < len(s.traps) && w.steps > 0; i++ {
		w.runTrap(s.traps[i], s)
	}
}

func (w *walker) runTrap(text string, s *state) {
	now := w.fork(s)
	now.dead, now.jobless = false, true
	for name := range w.touched.names {
		if f, ok := strings.CutSuffix(name, "()"); ok {
			now.funcs.Put(f, function{})
			continue
		}
		v := now.get(name)
		v.value = unknown()
		w.put(now, name, v)
	}
	if w.touched.dirs {
		now.dirs, now.failed = nil, nil
	}
	if w.touched.params || len(w.calls) > 0 {
		now.params = params{}
	}
	outer := w.process
	w.process = process{}
	w.script(text, now)
	joinList(&s.traps, now.traps)
	w.process = outer
}

func (p params) count() int {
	if !p.known || slices.ContainsFunc(p.words, word.several) {
		return -1
	}
	return len(p.words)
}

func (p params) shift(n int) params {
	count := p.count()
	switch {
	case n < 0 || !p.known:
		return params{}
	case count >= 0 && n > count:
		return p // shift fails and removes none
	}
	for i, a := range p.words {
		if i == n {
			return params{words: p.words[n:], known: true}
		}
		if a.many || a.glob {
			return params{}
		}
	}
	return params{known: count >= 0}
}
