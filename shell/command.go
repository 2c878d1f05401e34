package shell

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// stmts follows statements that run one after the other.
func (w *walker) stmts(list []*syntax.Stmt, s *state) {
	for _, stmt := range list {
		w.stmt(stmt, s)
		s.settle()
	}
}

// stmt follows one statement with its redirections.
func (w *walker) stmt(stmt *syntax.Stmt, s *state) {
	if w.steps--; w.steps <= 0 || !w.enter() {
		return
	}
	defer w.leave()
	if stmt.Background || stmt.Coprocess || stmt.Disown {
		w.apart(s, func(sub *state) { w.foreground(stmt, sub) })
		return
	}
	w.foreground(stmt, s)
}

// foreground follows a statement in the process of the shell.
func (w *walker) foreground(stmt *syntax.Stmt, s *state) {
	input := s.input
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		w.simple(c, stmt.Redirs, s)
	case *syntax.DeclClause, *syntax.LetClause:
		if slices.ContainsFunc(stmt.Redirs, expands) {
			w.opaque("a declaration changes what its redirections expand to", w.text(stmt))
		}
		w.compound(stmt, s)
	default:
		w.compound(stmt, s)
	}
	s.input = input
	if stmt.Negated {
		s.settle()
	}
}

// compound follows a command whose redirections come first.
func (w *walker) compound(stmt *syntax.Stmt, s *state) {
	w.redirections(stmt.Redirs, s)
	if !w.mayFail(stmt.Redirs, s) {
		w.command(stmt.Cmd, s)
		return
	}
	before := w.fork(s)
	w.command(stmt.Cmd, s)
	w.join(s, before)
}

// redirections follows the redirections of one command.
func (w *walker) redirections(redirs []*syntax.Redirect, s *state) {
	for _, r := range redirs {
		if w.steps--; w.steps <= 0 {
			return
		}
		w.redirect(r, s)
	}
}

// expands reports whether a redirection's target is known only after expansion.
func expands(r *syntax.Redirect) bool {
	if r.Word == nil {
		return false
	}
	_, plain := plainText(r.Word)
	return !plain
}

// command follows any kind of command. A kind that is not listed is not known.
func (w *walker) command(cmd syntax.Command, s *state) {
	switch c := cmd.(type) {
	case nil:
	case *syntax.BinaryCmd:
		w.binary(c, s)
	case *syntax.Subshell:
		w.apart(s, func(sub *state) { w.stmts(c.Stmts, sub) })
	case *syntax.Block:
		w.stmts(c.Stmts, s)
	case *syntax.IfClause:
		w.ifClause(c, s)
	case *syntax.WhileClause:
		w.turns(s, &loop{}, func(s *state) { w.stmts(c.Cond, s) }, func(s *state) { w.stmts(c.Do, s) }, nil)
	case *syntax.ForClause:
		w.forClause(c, s)
	case *syntax.CaseClause:
		w.caseClause(c, s)
	case *syntax.FuncDecl:
		w.function(c, s)
	case *syntax.DeclClause:
		w.declare(c, s)
	case *syntax.TimeClause:
		if w.posix {
			w.opaque(otherShell, w.text(c))
		}
		if c.Stmt != nil {
			w.stmt(c.Stmt, s)
		}
	case *syntax.TestClause:
		w.condition(c.X, s)
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

// binary follows &&, || and pipes.
func (w *walker) binary(c *syntax.BinaryCmd, s *state) {
	switch c.Op {
	case syntax.AndStmt:
		w.stmt(c.X, s)
		failed := s.failed
		s.failed = nil
		skipped := w.fork(s)
		w.stmt(c.Y, s)
		w.join(s, skipped)
		s.failed = failed
	case syntax.OrStmt:
		w.stmt(c.X, s)
		succeeded := w.fork(s)
		succeeded.failed = nil
		if len(s.failed) > 0 {
			s.dirs = s.failed
		}
		s.failed = nil
		w.stmt(c.Y, s)
		w.join(s, succeeded)
	case syntax.Pipe, syntax.PipeAll:
		w.pipe(c, s)
	default:
		w.opaque("this operator is not followed", w.text(c))
	}
}

// pipe follows both sides of a pipe. The right one may read what the left one names.
func (w *walker) pipe(c *syntax.BinaryCmd, s *state) {
	printed, said := w.printed, w.said
	w.printed, w.said = nil, ""
	w.apart(s, func(sub *state) { w.stmt(c.X, sub) })
	w.apart(s, func(sub *state) {
		sub.fed, sub.input = slices.Concat(s.fed, w.printed), w.said
		w.stmt(c.Y, sub)
	})
	w.printed, w.said = slices.Concat(printed, w.printed), said
}

// ifClause follows if, elif and else.
func (w *walker) ifClause(c *syntax.IfClause, s *state) {
	w.stmts(c.Cond, s)
	other := w.fork(s)
	w.stmts(c.Then, s)
	if c.Else != nil && w.enter() {
		w.ifClause(c.Else, other)
		w.leave()
	}
	w.join(s, other)
}

// caseClause follows every branch of a case. Patterns are expanded one after the other
// until one matches, and ;& and ;;& go on in the next branch with what this one has
// changed.
func (w *walker) caseClause(c *syntax.CaseClause, s *state) {
	w.word(c.Word, s)
	out := &state{dead: true}
	falling := &state{dead: true} // from the branch before, whatever the pattern
	for _, item := range c.Items {
		if w.steps--; w.steps <= 0 {
			return
		}
		for i, p := range item.Patterns {
			if p.Lit() == "esac" {
				w.opaque("bash may end `case` at this pattern", w.text(p))
			}
			if p.Lit() != "" || w.steps <= 0 {
				continue
			}
			matched := w.fork(s)
			w.word(p, s)
			if i > 0 {
				w.join(s, matched)
			}
		}
		branch := w.fork(s)
		w.join(branch, falling)
		falling = &state{dead: true}
		w.stmts(item.Stmts, branch)
		branch.settle()
		switch item.Op {
		case syntax.Break:
			w.join(out, branch)
		case syntax.Fallthrough:
			falling = branch
		case syntax.Resume:
			w.join(s, branch)
		default:
			w.opaque("this end of a branch is not followed", w.text(c))
		}
	}
	w.join(s, falling)
	w.join(s, out)
}

// function records a function; its body is followed at each call.
func (w *walker) function(c *syntax.FuncDecl, s *state) {
	if c.Name == nil || len(c.Names) > 0 || reservedNames[c.Name.Value] {
		w.opaque("a function takes the name of a part of the shell", w.text(c))
		return
	}
	if !isBody(c.Body) {
		w.opaque("a list begins with the definition of a function", w.text(c))
		w.stmt(c.Body, w.fork(s))
	}
	w.setFunc(c.Name.Value, function{c.Body}, s)
}

// setFunc records that a name is a function.
func (w *walker) setFunc(name string, f function, s *state) {
	w.changes++
	w.steps -= s.funcs.put(name, f) / 32
	s.touched.set(name + "()")
}

// isBody reports whether a statement is one that bash takes for the body of a
// function. The parser takes all of "f() { p; } && f" for the definition, of which
// bash runs the second half.
func isBody(body *syntax.Stmt) bool {
	switch body.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.TestClause, *syntax.ArithmCmd:
		detached := body.Background || body.Coprocess || body.Disown
		return !detached && !body.Negated
	}
	return false
}

// reservedNames are commands that the parser treats as syntax, and those whose
// meaning the analysis relies on.
var reservedNames = map[string]bool{
	"declare": true, "typeset": true, "local": true, "export": true, "readonly": true, "nameref": true, "let": true,
	"time": true, "coproc": true, "eval": true, "exec": true, "command": true, "builtin": true, "cd": true, "pushd": true,
	"popd": true, "set": true, "unset": true, "shopt": true, "source": true, ".": true, "trap": true, "exit": true, "return": true,
	"break": true, "continue": true, "shift": true, "command_not_found_handle": true,
}
