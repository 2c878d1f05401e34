package shell

import "strings"

// trap follows the text of a trap, which may run at any point between here and the end
// of the process.
func (w *walker) trap(args []word, s *state, source string) {
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	} else if len(args) > 0 && args[0].known() && strings.HasPrefix(args[0].text, "-") {
		return // it shows traps, or takes one away
	}
	if len(args) < 2 {
		return
	}
	if !args[0].known() {
		w.opaque("`trap` runs a text known only when it runs", source)
		return
	}
	w.changes++
	t := trap{args[0].text}
	s.traps = append(s.traps, t)
	s.touched.armed = true
	onlyAtEnd := true
	for _, signal := range args[1:] {
		onlyAtEnd = onlyAtEnd && signal.known() && listed("EXIT 0", signal.text)
	}
	if onlyAtEnd {
		return
	}
	// At a signal it runs in between: it must not change what comes after it.
	changes := w.changes
	w.runTrap(t, s)
	if w.changes != changes {
		w.opaque("a trap changes what comes after it", source)
	}
}

// runTraps follows the traps of a process at its end.
func (w *walker) runTraps(s *state) {
	for i := 0; i < len(s.traps) && w.steps > 0; i++ {
		w.runTrap(s.traps[i], s)
	}
}

// runTrap follows a trap in all the states in which it may run: what has changed since
// a trap was set is not known.
func (w *walker) runTrap(t trap, s *state) {
	now := w.fork(s)
	now.dead = false
	for name := range s.touched.names {
		if f, ok := strings.CutSuffix(name, "()"); ok {
			now.funcs.put(f, function{})
			continue
		}
		v := now.get(name)
		v.value = unknown()
		w.put(now, name, v)
	}
	if s.touched.dirs {
		now.dirs, now.failed = nil, nil
	}
	if s.touched.params || len(w.calls) > 0 {
		now.params = params{}
	}
	loops, calls, exits := w.loops, w.calls, w.exits
	w.loops, w.calls, w.exits = nil, nil, nil
	w.script(t.text, now)
	joinList(&s.traps, now.traps)
	w.loops, w.calls, w.exits = loops, calls, exits
}
