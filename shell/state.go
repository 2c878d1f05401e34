package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/table"
	"github.com/toold/toold/shell/programs"
)

// state is what is known at one point of a script. join handles every field, which a test checks.
type state struct {
	dead       bool // unreachable; joining it changes nothing
	vars       table.Table[variable]
	funcs      table.Table[function]
	params     params
	locals     table.Table[local] // of the current function
	dirs       []string           // nil = unknown
	failed     []string           // directories if the last command failed; nil = same as dirs
	left       []string           // possible values of OLDPWD; nil = unknown
	split      bool               // IFS may have changed
	noglobs    bool               // nullglob may be set
	globstar   bool               // ** may match directories
	closed     bool               // a descriptor may have been closed
	strange    bool               // variables that are not known may be set
	jobless    bool               // $! may be empty
	input      string             // known standard input of the next command
	shown      bool               // standard output may be a terminal
	pipedNames []programs.Operand // trees whose names are on standard input
	traps      []string           // of this process
	disk       *disk              // shared by all forks of the state
}

// function has no body if it may be one of several, or undefined.
type function struct{ body *syntax.Stmt }

type params struct {
	words []word
	known bool // words are complete
}

type local struct {
	before variable
	unset  bool // it did not exist before
	unsure bool // it may not be local
}

// touched is what has changed since a trap was set, since the trap may run at any time.
type touched struct {
	armed        bool
	names        map[string]bool // functions as "f()"
	dirs, params bool
}

func (w *walker) fork(s *state) *state {
	c := *s
	c.vars, c.funcs, c.locals = s.vars.Share(), s.funcs.Share(), s.locals.Share()
	return &c
}

// join makes s the union of both states, and reports whether that changed s.
func (w *walker) join(s, o *state) (changed bool) {
	if o == nil || o.dead {
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
	note(s.vars.Join(o.vars, variable.or, variable.orUnset))
	note(s.funcs.Join(o.funcs, function.or, function.orNone))
	note(s.locals.Join(o.locals, local.or, local.orNone))
	note(s.params.join(o.params), len(s.params.words))
	input := s.input
	if s.input != o.input {
		s.input = ""
	}
	for _, c := range []bool{
		s.input != input, joinDirs(&s.dirs, o.dirs), joinDirs(&s.left, o.left), joinFlag(&s.split, o.split), joinFlag(&s.noglobs, o.noglobs), joinFlag(&s.globstar, o.globstar),
		joinFlag(&s.closed, o.closed), joinFlag(&s.strange, o.strange), joinFlag(&s.shown, o.shown), joinFlag(&s.jobless, o.jobless), joinList(&s.pipedNames, o.pipedNames), joinList(&s.traps, o.traps), s.disk.join(o.disk),
	} {
		changed = changed || c
	}
	return changed
}

func joinFlag(s *bool, o bool) (changed bool) {
	changed = o && !*s
	*s = *s || o
	return changed
}

func joinList[T comparable](s *[]T, o []T) (changed bool) {
	if len(o) > 0 && len(*s) == len(o) && &(*s)[0] == &o[0] {
		return false
	}
	for _, x := range o {
		if !slices.Contains(*s, x) {
			*s = append(slices.Clip(*s), x) // forks share the array
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
	joined := slices.Clone(p.words)
	for i, b := range o.words {
		switch a := joined[i]; {
		case a == b:
		case a.many || b.many:
			joined[i] = anyWords()
		default:
			joined[i] = word{value: a.value.or(b.value)}
		}
	}
	changed = !slices.Equal(p.words, joined)
	p.words = joined
	return changed
}

// joinDirs adds possible directories; nil means any.
func joinDirs(s *[]string, o []string) (changed bool) {
	if *s == nil {
		return false
	}
	changed = joinList(s, o)
	if o == nil || len(*s) > maxDirs {
		*s, changed = nil, true
	}
	return changed
}

// fail continues with the state after a failed command.
func (s *state) fail() {
	if len(s.failed) > 0 {
		s.dirs = s.failed
	}
	s.failed = nil
}

// settle continues with the union of success and failure of the last command.
func (s *state) settle() {
	if len(s.failed) > 0 {
		joinDirs(&s.dirs, s.failed)
	}
	s.failed = nil
}

func (w *walker) touch(name string) {
	if w.touched.armed {
		w.touched.names[name] = true
	}
}

func (w *walker) setDirs(s *state, dirs []string) {
	w.changes++
	w.touched.dirs = w.touched.dirs || w.touched.armed
	if s.dirs = dirs; dirs == nil || len(dirs) > maxDirs {
		s.dirs, s.left = nil, nil
	}
}

func (w *walker) setParams(s *state, p params) {
	w.changes++
	s.params, w.touched.params = p, w.touched.params || w.touched.armed
}

func (s *state) get(name string) variable {
	v, ok := s.vars.Get(name)
	v.dynamic = v.dynamic || !ok && s.strange
	return v
}

func (w *walker) put(s *state, name string, v variable) {
	w.steps -= s.vars.Put(name, v) / 32
	w.touch(name)
}

func (w *walker) drop(s *state, name string) {
	w.steps -= s.vars.Drop(name) / 32
	w.touch(name)
}

// alongside follows a concurrent process.
func (w *walker) alongside(s *state, walk func(*state)) {
	w.beside++
	w.apart(s, walk)
	w.beside--
}

// apart follows a subshell: only its changes to the disk remain.
func (w *walker) apart(s *state, walk func(*state)) {
	outer, armed := w.process, w.touched.armed
	w.process, w.touched.armed = process{}, false
	for _, c := range outer.calls {
		w.calls = append(w.calls, &call{body: c.body, apart: c})
	}
	sub := w.fork(s)
	sub.traps = nil
	walk(sub)
	w.runTraps(sub)
	w.process, w.touched.armed = outer, armed
}
