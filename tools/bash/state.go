package bash

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// value is what is known of a shell variable.
type value struct {
	text    string // the value, or its known beginning when dynamic
	dynamic bool
	glob    bool // text is a pattern, and the value one of the names it matches
	number  bool // it is a number, whichever
}

// state is what is known at one point of a script.
type state struct {
	vars   map[string]value
	dirs   []string // where the shell may be; nil = unknown
	failed []string // where it may be as well, if the last command failed
	funcs  map[string]*syntax.Stmt
	args   []word // positional parameters
	exact  bool   // whether args are known
}

// fork returns a copy of a state, for a branch or a subshell. Where the bounds are
// used up nothing is followed any more, and it is empty.
func (w *walker) fork(s *state) *state {
	if w.steps -= s.size() / 32; w.steps <= 0 {
		return &state{vars: make(map[string]value), funcs: make(map[string]*syntax.Stmt)}
	}
	c := *s
	c.vars = maps.Clone(s.vars)
	c.funcs = maps.Clone(s.funcs)
	c.dirs = slices.Clone(s.dirs)
	return &c
}

// size is how much a copy copies.
func (s *state) size() int { return len(s.vars) + len(s.funcs) }

// settle is called where a command has ended and the next runs in any case.
func (s *state) settle() {
	if s.dirs != nil {
		for _, d := range s.failed {
			s.addDir(d)
		}
	}
	s.failed = nil
}

// addDir adds a folder the shell may be in.
func (s *state) addDir(dir string) {
	if !slices.Contains(s.dirs, dir) {
		s.dirs = append(s.dirs, dir)
	}
	if len(s.dirs) > maxDirs {
		s.dirs = nil
	}
}

// merge makes s what is known after either s or other.
func (s *state) merge(other *state) {
	for name, v := range s.vars {
		if o, ok := other.vars[name]; !ok || o != v {
			s.vars[name] = value{dynamic: true, number: v.number && ok && o.number}
		}
	}
	for name := range other.vars {
		if _, ok := s.vars[name]; !ok {
			s.vars[name] = value{dynamic: true}
		}
	}
	for name, f := range s.funcs {
		if other.funcs[name] != f {
			s.funcs[name] = nil // may be a function, may be a program
		}
	}
	for name := range other.funcs {
		if _, ok := s.funcs[name]; !ok {
			s.funcs[name] = nil
		}
	}
	s.settle()
	other.settle()
	if s.dirs == nil || other.dirs == nil {
		s.dirs = nil
		return
	}
	for _, d := range other.dirs {
		if s.dirs != nil {
			s.addDir(d)
		}
	}
}

// shift drops the first positional parameter, if it is plain which that is.
func (s *state) shift(one bool) {
	if one && s.exact && len(s.args) > 0 && !s.args[0].split && !s.args[0].glob {
		s.args = s.args[1:]
	} else {
		s.exact = false
	}
}

// forget makes the variables unknown. One that is assigned numbers only, and was
// one before, is some number.
func (s *state) forget(names map[string]bool) {
	for name, text := range names {
		old, set := s.vars[name]
		number := !text && (!set || old.isNumeric())
		s.vars[name] = value{dynamic: true, number: number}
	}
}
