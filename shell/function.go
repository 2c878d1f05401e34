package shell

import (
	"mvdan.cc/sh/v3/syntax"
)

// call is a function being followed. One that calls itself is followed until neither
// what it is called with nor what it leaves changes any more.
type call struct {
	name     string
	body     *syntax.Stmt
	entry    *state // where the body begins, for all calls of it
	exit     *state // where it ends, as far as it was followed; nil = not yet
	returns  *state // where it returns in this turn
	recursed bool   // it has called itself
	again    bool   // with something new
	apart    *call  // the same call, seen from a process of its own
}

// callFunction follows the body of a function with the arguments of a call.
func (w *walker) callFunction(name string, body *syntax.Stmt, args []word, s *state, source string) {
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
	c := &call{name: name, body: body, entry: w.entry(args, s)}
	w.calls = append(w.calls, c)
	for turn := 1; ; turn++ {
		c.again, c.returns = false, nil
		in := w.fork(c.entry)
		w.stmt(body, in)
		in.settle()
		if c.returns != nil {
			w.join(in, c.returns)
		}
		w.leaveScope(in)
		changed := true
		if c.exit == nil {
			c.exit = in
		} else {
			changed = w.join(c.exit, in)
		}
		if !c.recursed || !c.again && !changed || w.steps <= 0 {
			break
		}
		if turn >= maxTurns {
			c.entry.params, c.entry.dirs = params{}, nil
		}
	}
	w.calls = w.calls[:len(w.calls)-1]
	s.resume(c.exit)
}

// entry is the state at the beginning of a function's body.
func (w *walker) entry(args []word, s *state) *state {
	in := w.fork(s)
	in.params, in.locals = params{words: args, known: true}, newTable[local]()
	return in
}

// resume makes s the state after a call.
func (s *state) resume(exit *state) {
	params, locals := s.params, s.locals
	*s = *exit
	s.params, s.locals = params, locals
}

// recurse follows a call of a function that is being followed.
func (w *walker) recurse(c *call, args []word, s *state) {
	for c.apart != nil {
		c = c.apart
	}
	c.recursed = true
	c.again = w.join(c.entry, w.entry(args, s)) || c.again
	if c.exit == nil {
		s.dead = true // it ends first where it does not call itself
		return
	}
	s.resume(w.fork(c.exit))
}

// leaveFunction follows return.
func (w *walker) leaveFunction(args []word, s *state) {
	if len(w.calls) == 0 {
		return // an error that changes nothing
	}
	c := w.calls[len(w.calls)-1]
	if c.apart != nil {
		s.dead = true // the end of a process of its own
		return
	}
	w.joinInto(&c.returns, s)
	if plainStatus(args) {
		s.dead = true
	}
}

// plainStatus reports whether the arguments of exit or return are such that these end
// what they are in.
func plainStatus(args []word) bool {
	if len(args) == 0 {
		return true
	}
	return len(args) == 1 && !args[0].many && (args[0].number || args[0].known() && isInteger(args[0].text))
}
