package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/shell/programs"
)

// state is all that is known at one point of a script. Every field takes part in
// join; a test fails for one that does not.
type state struct {
	dead    bool // this point is never reached; such a state joins as nothing
	vars    table[variable]
	funcs   table[function]
	params  params
	locals  table[local]       // variables of the function being followed
	popped  []string           // variables of which a caller's local may be unset, or passed over
	dirs    []string           // where the shell may be; nil = unknown
	failed  []string           // where it may be as well if the last command failed
	left    []string           // where it was before, OLDPWD; nil = unknown
	split   bool               // IFS may have changed: words are split elsewhere
	noglobs bool               // a pattern that matches nothing may be no word
	closed  bool               // a descriptor may have been closed
	input   string             // what the next command reads on its standard input, as far as it is known
	fed     []programs.Operand // trees whose names standard input contains
	traps   []trap             // of this process
	touched *touched           // what has changed since a trap was set
	disk    *disk              // what the script has changed on the disk
}

// function is the body of a function, or nil if it may be one of several, or none.
type function struct{ body *syntax.Stmt }

// params are the positional parameters.
type params struct {
	words []word
	known bool // whether words are all there are
}

// local is a variable of a function: what it was before, to be restored at the end.
type local struct {
	before variable
	unset  bool // it did not exist
	unsure bool // it may not be local
}

// trap is a text that runs when a process ends, or at a signal.
type trap struct{ text string }

// touched lists what has changed since a trap was set, in one process: the trap may
// run at any point in between.
type touched struct {
	armed        bool
	names        map[string]bool // variables, and functions as "f()"
	dirs, params bool
}

// fork returns a copy of a state for a branch.
func (w *walker) fork(s *state) *state {
	c := *s
	c.vars, c.funcs = s.vars.share(), s.funcs.share()
	if s.locals.entries != nil {
		c.locals = s.locals.share()
	}
	c.dirs = slices.Clip(s.dirs)
	s.dirs = slices.Clip(s.dirs)
	c.left, s.left = slices.Clip(s.left), slices.Clip(s.left)
	c.popped, s.popped = slices.Clip(s.popped), slices.Clip(s.popped)
	c.traps, s.traps = slices.Clip(s.traps), slices.Clip(s.traps)
	return &c
}

// join makes s what is known when either s or o is the state. It reports whether s
// changed. o is not used afterwards.
func (w *walker) join(s, o *state) (changed bool) {
	if o.dead {
		return false
	}
	if s.dead {
		*s = *w.fork(o)
		return true
	}
	s.settle()
	o.settle()
	note := func(c bool, cost int) {
		changed = changed || c
		w.steps -= cost / 32
	}
	note(s.vars.join(o.vars, variable.or, variable.orUnset))
	note(s.funcs.join(o.funcs, function.or, function.orNone))
	if s.locals.entries != nil && o.locals.entries != nil {
		note(s.locals.join(o.locals, local.or, local.orNone))
	}
	note(s.params.join(o.params), len(s.params.words))
	note(s.joinDirs(o.dirs), 0)
	if s.left != nil {
		note(joinList(&s.left, o.left), 0)
	}
	if o.left == nil {
		note(s.left != nil, 0)
		s.left = nil
	}
	note(joinFlag(&s.split, o.split), 0)
	note(joinFlag(&s.noglobs, o.noglobs), 0)
	note(joinFlag(&s.closed, o.closed), 0)
	if s.input != o.input {
		note(s.input != "", 0)
		s.input = ""
	}
	note(joinList(&s.popped, o.popped), 0)
	note(joinList(&s.fed, o.fed), 0)
	note(joinList(&s.traps, o.traps), 0)
	note(s.touched.join(o.touched), 0)
	note(s.disk.join(o.disk), 0)
	return changed
}

func joinFlag(s *bool, o bool) (changed bool) {
	changed = o && !*s
	*s = *s || o
	return changed
}

// joinList appends what s does not have.
func joinList[T comparable](s *[]T, o []T) (changed bool) {
	if len(o) > 0 && len(*s) == len(o) && &(*s)[0] == &o[0] {
		return false
	}
	for _, x := range o {
		if !slices.Contains(*s, x) {
			*s = append(*s, x)
			changed = true
		}
	}
	return changed
}

func (f function) or(o function) function {
	if f == o {
		return f
	}
	return function{}
}

func (f function) orNone() function { return function{} }

func (l local) or(o local) local {
	if l == o {
		return l
	}
	return local{before: l.before.or(o.before), unsure: l.unsure || o.unsure || l.unset != o.unset}
}

func (l local) orNone() local { return local{before: l.before, unsure: true} }

func (p *params) join(o params) (changed bool) {
	if !p.known {
		return false
	}
	if !o.known || len(p.words) != len(o.words) {
		*p = params{}
		return true
	}
	if slices.Equal(p.words, o.words) {
		return false
	}
	joined := slices.Clone(p.words)
	for i, a := range joined {
		b := o.words[i]
		if a == b {
			continue
		}
		if a.many || b.many {
			*p = params{}
			return true
		}
		joined[i] = wordOf(a.value().or(b.value()))
		changed = changed || joined[i] != a
	}
	p.words = joined
	return changed
}

// joinDirs adds the directories of another state.
func (s *state) joinDirs(dirs []string) (changed bool) {
	if s.dirs == nil {
		return false
	}
	if dirs == nil {
		s.dirs = nil
		return true
	}
	for _, d := range dirs {
		if s.dirs != nil && !slices.Contains(s.dirs, d) {
			s.addDir(d)
			changed = true
		}
	}
	return changed
}

// settle is called where a command has ended and the next runs in any case.
func (s *state) settle() {
	for _, d := range s.failed {
		if s.dirs != nil {
			s.addDir(d)
		}
	}
	s.failed = nil
}

// addDir adds a directory the shell may be in.
func (s *state) addDir(dir string) {
	if !slices.Contains(s.dirs, dir) {
		s.dirs = append(s.dirs, dir)
	}
	if len(s.dirs) > maxDirs {
		s.dirs = nil
	}
}

// widen makes unknown what differs between two turns of a loop and is not unknown by
// being joined: directories.
func (s *state) widen(before []string) {
	if len(s.dirs) != len(before) {
		s.dirs = nil
	}
}

func (t *touched) join(o *touched) (changed bool) {
	if t == o {
		return false
	}
	changed = joinFlag(&t.armed, o.armed)
	for name := range o.names {
		if !t.names[name] {
			t.set(name)
			changed = true
		}
	}
	changed = joinFlag(&t.dirs, o.dirs) || changed
	return joinFlag(&t.params, o.params) || changed
}

// set records that a variable or function has changed.
func (t *touched) set(name string) {
	if !t.armed {
		return
	}
	if t.names == nil {
		t.names = make(map[string]bool)
	}
	t.names[name] = true
}

// setDirs records where the shell may be.
func (w *walker) setDirs(s *state, dirs []string) {
	w.changes++
	s.dirs, s.touched.dirs = dirs, s.touched.dirs || s.touched.armed
}

// setParams records new positional parameters.
func (w *walker) setParams(s *state, p params) {
	w.changes++
	s.params, s.touched.params = p, s.touched.params || s.touched.armed
}

// get returns a variable; one that does not exist is empty.
func (s *state) get(name string) variable {
	v, _ := s.vars.get(name)
	return v
}

// put sets a variable.
func (w *walker) put(s *state, name string, v variable) {
	w.steps -= s.vars.put(name, v) / 32
	s.touched.set(name)
}

// drop removes a variable.
func (w *walker) drop(s *state, name string) {
	w.steps -= s.vars.drop(name) / 32
	s.touched.set(name)
}

// apart follows what runs in a process of its own: what ends it ends nothing else,
// and what it changes stays its own, but for the disk.
func (w *walker) apart(s *state, walk func(*state)) {
	loops, calls, exits := w.loops, w.calls, w.exits
	w.loops, w.exits = nil, nil
	w.calls = slices.Clone(calls)
	for i := range w.calls {
		w.calls[i] = &call{name: calls[i].name, body: calls[i].body, apart: calls[i]}
	}
	sub := w.fork(s)
	sub.traps, sub.touched = nil, &touched{}
	walk(sub)
	w.runTraps(sub)
	w.loops, w.calls, w.exits = loops, calls, exits
}
