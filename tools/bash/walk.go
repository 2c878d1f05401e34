package bash

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// stmts walks statements that run one after the other.
func (w *walker) stmts(list []*syntax.Stmt, s *state) {
	for _, stmt := range list {
		w.stmt(stmt, s)
		s.settle()
	}
}

// stmt walks one statement with its redirections.
func (w *walker) stmt(stmt *syntax.Stmt, s *state) {
	w.steps -= 1 + s.size()/64 // copies of the state cost time
	if w.steps <= 0 || !w.enter() {
		return
	}
	defer w.leave()
	if stmt.Background || stmt.Coprocess || stmt.Disown {
		s = w.fork(s)
	}
	defer func(input string) { w.input = input }(w.input)
	for _, r := range stmt.Redirs {
		if w.steps--; w.steps <= 0 {
			return
		}
		w.redirect(r, s)
	}
	if w.mayFail(stmt.Redirs) {
		before := w.fork(s)
		defer func() { s.merge(before) }()
	}
	if stmt.Cmd != nil {
		w.command(stmt.Cmd, s)
	}
	if stmt.Negated {
		s.settle()
	}
}

// command walks any kind of command. A kind that is not listed is not known.
func (w *walker) command(cmd syntax.Command, s *state) {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		w.call(c, s)
	case *syntax.BinaryCmd:
		w.binary(c, s)
	case *syntax.Subshell:
		w.apart(func() { w.stmts(c.Stmts, w.fork(s)) })
	case *syntax.Block:
		w.stmts(c.Stmts, s)
	case *syntax.IfClause:
		w.ifClause(c, s)
	case *syntax.WhileClause:
		s.forget(w.changed(c, s))
		w.loop(s, func(s *state) { w.stmts(c.Cond, s); w.stmts(c.Do, s) })
	case *syntax.ForClause:
		w.forClause(c, s)
	case *syntax.CaseClause:
		w.caseClause(c, s)
	case *syntax.FuncDecl:
		w.function(c, s)
	case *syntax.DeclClause:
		w.declare(c, s)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt, s)
		}
	case *syntax.TestClause:
		w.test(c.X, s)
	case *syntax.ArithmCmd:
		w.arithmetic(c.X, s)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			w.arithmetic(x, s)
		}
	default:
		w.opaque("this form of command is not followed", w.text(cmd))
	}
}

// binary walks &&, || and pipes.
func (w *walker) binary(c *syntax.BinaryCmd, s *state) {
	switch c.Op {
	case syntax.AndStmt:
		w.stmt(c.X, s)
		failed := s.failed
		s.failed = nil
		before := w.fork(s)
		w.stmt(c.Y, s)
		s.settle()
		s.merge(before)
		s.failed = failed
	case syntax.OrStmt:
		w.stmt(c.X, s)
		after := w.fork(s)
		after.failed = nil
		if len(s.failed) > 0 {
			s.dirs = s.failed
		}
		s.failed = nil
		w.stmt(c.Y, s)
		if ends(c.Y) {
			*s = *after
			return
		}
		s.merge(after)
	case syntax.Pipe, syntax.PipeAll:
		w.pipe(c, s)
	default:
		w.opaque("this operator is not followed", w.text(c))
	}
}

// pipe walks both sides of a pipe. The right one may read what the left one names.
func (w *walker) pipe(c *syntax.BinaryCmd, s *state) {
	printed, fed, said, input := w.printed, w.fed, w.said, w.input
	w.printed, w.said = nil, ""
	w.apart(func() { w.stmt(c.X, w.fork(s)) })
	w.fed, w.input = slices.Concat(fed, w.printed), w.said
	w.apart(func() { w.stmt(c.Y, w.fork(s)) })
	w.fed, w.printed, w.input, w.said = fed, slices.Concat(printed, w.printed), input, said
}

// ends reports whether a statement certainly leaves the script.
func ends(stmt *syntax.Stmt) bool {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Background || len(stmt.Redirs) > 0 || len(call.Args) == 0 || call.Args[0].Lit() != "exit" {
		return false
	}
	return len(call.Args) == 1 || len(call.Args) == 2 && isNumber(call.Args[1].Lit()) // with more it is an error, and stays
}

// loop walks a body that runs any number of times, also in the folder in which
// an earlier run of it left the shell.
func (w *walker) loop(s *state, body func(*state)) {
	before, broken := w.fork(s), w.doubts.broken
	defer func() { w.doubts.broken = broken }()
	body(s)
	s.settle()
	if len(s.dirs) != len(before.dirs) || s.dirs == nil || len(s.dirs) > 0 && s.dirs[0] != before.dirs[0] {
		s.dirs = nil
		body(s)
	}
	s.merge(before)
}

// ifClause walks if, elif and else.
func (w *walker) ifClause(c *syntax.IfClause, s *state) {
	w.stmts(c.Cond, s)
	other := w.fork(s)
	w.stmts(c.Then, s)
	if c.Else != nil && w.enter() {
		w.ifClause(c.Else, other)
		w.leave()
	}
	s.merge(other)
}

// forClause walks a loop over words or numbers.
func (w *walker) forClause(c *syntax.ForClause, s *state) {
	if c.Select {
		w.opaque("select is not followed", w.text(c))
		return
	}
	names := w.changed(c, s)
	switch l := c.Loop.(type) {
	case *syntax.CStyleLoop:
		s.forget(names)
		for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			if x != nil {
				w.arithmetic(x, s)
			}
		}
		w.loop(s, func(s *state) { w.stmts(c.Do, s) })
	case *syntax.WordIter:
		w.forWords(c, l, names, s)
	default:
		w.opaque("this form of loop is not followed", w.text(c))
	}
}

// forWords walks a loop over words: one by one if they are few and known.
func (w *walker) forWords(c *syntax.ForClause, l *syntax.WordIter, names map[string]bool, s *state) {
	name := l.Name.Value
	delete(names, name)
	items := w.words(l.Items, s)
	if !l.InPos.IsValid() { // for x; do: over the positional parameters
		items = append([]word(nil), s.args...)
		if !s.exact {
			items = []word{{dynamic: true, split: true}}
		}
	}
	s.forget(names)
	if len(items) > maxItems {
		items = []word{{dynamic: true}}
	}
	before := w.fork(s)
	for _, item := range items {
		w.setVar(name, value{text: item.text, dynamic: item.dynamic, glob: item.glob}, s, false)
		w.loop(s, func(s *state) { w.stmts(c.Do, s) })
	}
	s.merge(before)
}

// caseClause walks every branch of a case, from the same beginning.
func (w *walker) caseClause(c *syntax.CaseClause, s *state) {
	w.word(c.Word, s)
	before := w.fork(s)
	for _, item := range c.Items {
		if w.steps <= 0 {
			return
		}
		for _, p := range item.Patterns {
			if p.Lit() != "" || w.steps <= 0 {
				continue
			}
			// A pattern is expanded if none before it matched, and may assign.
			earlier := w.fork(before)
			w.word(p, before)
			before.merge(earlier)
		}
		w.steps -= 1 + s.size()/64
		branch := w.fork(before)
		if item.Op != syntax.Break {
			// ;& and ;;& go on in the next branch with what this one has changed.
			branch.forget(w.changed(c, s))
			branch.dirs = nil
		}
		w.stmts(item.Stmts, branch)
		s.merge(branch)
	}
	s.merge(before)
}

// function records a function; its body is walked at each call.
func (w *walker) function(c *syntax.FuncDecl, s *state) {
	if c.Name == nil || len(c.Names) > 0 || reservedNames[c.Name.Value] {
		w.opaque("a function takes the name of a part of the shell", w.text(c))
		return
	}
	if !isBody(c.Body) {
		w.opaque("a list begins with the definition of a function", w.text(c))
		w.stmt(c.Body, w.fork(s))
	}
	w.changes++
	if len(w.traps) > 0 {
		w.opaque("a trap may call the function", w.text(c))
	}
	s.funcs[c.Name.Value] = c.Body
	if w.doubts.any() {
		s.funcs[c.Name.Value] = nil
	}
}

// isBody reports whether a statement is one that bash takes for the body of a
// function. The parser takes all of "f() { p; } && f" for the definition, of which
// bash runs the second half.
func isBody(body *syntax.Stmt) bool {
	switch body.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.TestClause, *syntax.ArithmCmd:
		return !body.Background && !body.Negated && !body.Coprocess && !body.Disown
	}
	return false
}

// reservedNames are commands the parser treats as syntax, and those whose meaning
// the analysis relies on.
var reservedNames = map[string]bool{
	"declare": true, "typeset": true, "local": true, "export": true, "readonly": true, "nameref": true, "let": true,
	"time": true, "coproc": true, "eval": true, "exec": true, "command": true, "builtin": true, "cd": true, "pushd": true,
	"popd": true, "set": true, "unset": true, "shopt": true, "source": true, ".": true, "trap": true, "exit": true, "return": true,
	"break": true, "continue": true, "command_not_found_handle": true,
}
