package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (w *walker) stmts(list []*syntax.Stmt, s *state) {
	for _, stmt := range list {
		w.stmt(stmt, s)
		s.settle()
	}
}

func (w *walker) stmt(stmt *syntax.Stmt, s *state) {
	if w.steps--; w.steps <= 0 || !w.enter() {
		return
	}
	defer w.leave()
	if stmt.Background || stmt.Coprocess || stmt.Disown {
		w.alongside(s, func(sub *state) { w.foreground(stmt, sub) })
		s.jobless = s.jobless && !stmt.Background
		return
	}
	w.foreground(stmt, s)
}

func (w *walker) foreground(stmt *syntax.Stmt, s *state) {
	input, shown := s.input, s.shown
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if w.simple(c, stmt.Redirs, s); len(c.Args) == 1 && c.Args[0].Lit() == "exec" {
			input, shown = s.input, s.shown // its redirections stay
		}
	case *syntax.DeclClause, *syntax.LetClause:
		if slices.ContainsFunc(stmt.Redirs, func(r *syntax.Redirect) bool { _, plain := plainText(r.Word); return r.Word != nil && !plain }) {
			w.opaque("a declaration changes what its redirections expand to", w.text(stmt))
		}
		w.compound(stmt, s)
	default:
		w.compound(stmt, s)
	}
	s.input, s.shown = input, shown
	if stmt.Negated {
		s.settle()
	}
}

func (w *walker) compound(stmt *syntax.Stmt, s *state) {
	w.redirections(stmt.Redirs, s)
	var unrun *state
	if w.mayFail(stmt.Redirs, s) {
		unrun = w.fork(s)
	}
	if stmt.Cmd != nil {
		w.command(stmt.Cmd, s)
	}
	w.join(s, unrun)
}

func (w *walker) redirections(redirs []*syntax.Redirect, s *state) {
	for _, r := range redirs {
		if w.steps--; w.steps <= 0 {
			return
		}
		w.redirect(r, s)
	}
}

func (w *walker) command(cmd syntax.Command, s *state) {
	switch c := cmd.(type) {
	case *syntax.CoprocClause:
		w.opaque("a coprocess sets variables", w.text(c))
		w.alongside(s, func(sub *state) { w.stmt(c.Stmt, sub) })
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
		w.timed(c, s)
	case *syntax.TestClause:
		w.condition(c.X, s)
	case *syntax.ArithmCmd:
		w.arithmetic(c.X, s)
	case *syntax.LetClause:
		w.let(c, s)
	default:
		w.opaque("this form of command is not followed", w.text(cmd))
	}
}

func (w *walker) let(c *syntax.LetClause, s *state) {
	if w.posix {
		w.opaque(otherShell, w.text(c))
	}
	for _, x := range c.Exprs {
		w.arithmetic(x, s)
	}
}

func (w *walker) timed(c *syntax.TimeClause, s *state) {
	if w.posix {
		w.opaque(otherShell, w.text(c))
	}
	if c.Stmt == nil {
		return
	}
	if call, ok := c.Stmt.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 && strings.HasPrefix(call.Args[0].Lit(), "-") {
		w.opaque("bash takes what follows `time` for a flag", w.text(c))
	}
	w.stmt(c.Stmt, s)
}

func (w *walker) binary(c *syntax.BinaryCmd, s *state) {
	switch c.Op {
	case syntax.AndStmt:
		w.stmt(c.X, s)
		skipped := w.fork(s)
		skipped.fail()
		s.failed = nil
		w.stmt(c.Y, s)
		dirs := s.dirs // directories if both succeed
		if s.fail(); s.dead {
			dirs = skipped.dirs
		}
		if w.join(s, skipped); s.dirs != nil {
			s.dirs, s.failed = dirs, s.dirs
		}
	case syntax.OrStmt:
		w.stmt(c.X, s)
		succeeded := w.fork(s)
		succeeded.failed = nil
		s.fail()
		w.stmt(c.Y, s)
		w.join(s, succeeded)
	case syntax.Pipe, syntax.PipeAll:
		w.pipe(c, s)
	default:
		w.opaque("this operator is not followed", w.text(c))
	}
}

func (w *walker) pipe(c *syntax.BinaryCmd, s *state) {
	printed, piping := w.printed, w.piping
	w.printed = nil
	input := w.outputOf(func() { w.alongside(s, func(sub *state) { w.stmt(c.X, sub) }) })
	w.piping = w.text(c.X)
	w.alongside(s, func(sub *state) {
		sub.pipedNames, sub.input = slices.Concat(s.pipedNames, w.printed), input
		w.stmt(c.Y, sub)
	})
	w.printed, w.piping = slices.Concat(printed, w.printed), piping
}

func (w *walker) ifClause(c *syntax.IfClause, s *state) {
	if len(c.Cond) == 0 { // else
		w.stmts(c.Then, s)
		return
	}
	w.stmts(c.Cond, s)
	other := w.fork(s)
	w.stmts(c.Then, s)
	if c.Else != nil && w.enter() {
		w.ifClause(c.Else, other)
		w.leave()
	}
	w.join(s, other)
}

// caseClause follows every branch; ;& and ;;& continue in the next one.
func (w *walker) caseClause(c *syntax.CaseClause, s *state) {
	w.word(c.Word, s)
	out := &state{dead: true}
	falling := &state{dead: true}
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

func (w *walker) function(c *syntax.FuncDecl, s *state) {
	if c.Name == nil || len(c.Names) > 0 || listed(reservedNames, c.Name.Value) {
		w.opaque("a function takes the name of a part of the shell", w.text(c))
		w.stmt(c.Body, w.fork(s))
		return
	}
	if !isBody(c.Body) {
		w.opaque("a list begins with the definition of a function", w.text(c))
		w.stmt(c.Body, w.fork(s))
	}
	w.setFunc(c.Name.Value, function{c.Body}, s)
}

func (w *walker) setFunc(name string, f function, s *state) {
	if w.exports && f.body != nil {
		w.opaque("a function is exported, or cannot be set", name)
	}
	if w.changes++; f.body != nil && !slices.Contains(w.bodies[name], f.body) {
		w.bodies[name] = append(w.bodies[name], f.body)
	}
	w.steps -= s.funcs.Put(name, f) / 32
	w.touch(name + "()")
}

// isBody reports whether bash parses the same body: of "f() { p; } && f", bash runs the second half.
func isBody(body *syntax.Stmt) bool {
	switch body.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.TestClause, *syntax.ArithmCmd:
		detached := body.Background || body.Coprocess || body.Disown
		return !detached && !body.Negated
	}
	return false
}

const reservedNames = "declare typeset local export readonly nameref let time coproc eval exec command builtin cd pushd popd set unset " +
	"shopt source . trap exit return break continue shift command_not_found_handle"

type loop struct {
	calls             int
	breaks, continues *state
}

// turns follows a loop until an iteration changes nothing. before also runs after the last iteration. before and
// after may be nil.
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
		if changed && turn >= maxTurns && len(s.dirs) != len(dirs) {
			s.dirs = nil
		}
		if w.steps <= 0 || !changed && s.disk.changes() == changes {
			*s = *out
			break
		}
	}
	w.join(s, l.breaks)
}

func (w *walker) turn(s *state, l *loop, body func(*state)) {
	l.continues = nil
	body(s)
	s.settle()
	w.join(s, l.continues)
}

func (w *walker) forClause(c *syntax.ForClause, s *state) {
	if c.Select {
		w.opaque("`select` is not followed", w.text(c))
	}
	body := func(s *state) { w.stmts(c.Do, s) }
	switch l := c.Loop.(type) {
	case *syntax.CStyleLoop:
		evaluate := func(x syntax.ArithmExpr) func(*state) { return func(s *state) { w.arithmetic(x, s) } }
		evaluate(l.Init)(s)
		w.turns(s, &loop{}, evaluate(l.Cond), body, evaluate(l.Post))
	case *syntax.WordIter:
		w.forWords(l, body, s)
	default:
		w.opaque("this form of loop is not followed", w.text(c))
	}
}

func (w *walker) forWords(l *syntax.WordIter, body func(*state), s *state) {
	items := w.words(l.Items, s)
	if !l.InPos.IsValid() {
		items = s.params.words
	}
	if len(items) > maxItems || !l.InPos.IsValid() && !s.params.known {
		items = []word{anyWords()}
	}
	this := &loop{calls: len(w.calls)}
	for _, item := range items {
		v := item.anyOf()
		set := func(s *state) { w.setVar(l.Name.Value, v, s, false) }
		if item.many || item.glob {
			w.turns(s, this, nil, func(s *state) { set(s); body(s) }, nil)
		} else {
			w.loops = append(w.loops, this)
			set(s)
			w.turn(s, this, body)
			w.loops = w.loops[:len(w.loops)-1]
		}
	}
	w.join(s, this.breaks)
}

func (w *walker) leaveLoop(name string, args []word, s *state) {
	w.changes++
	n := countOf(args)
	if len(w.loops) == 0 {
		return // no effect outside of loops
	}
	own := w.loops[len(w.loops)-1].calls == len(w.calls)
	if n <= 0 || !own {
		for _, l := range w.loops {
			w.joinInto(&l.breaks, s)
			w.joinInto(&l.continues, s)
		}
		return
	}
	l := w.loops[max(0, len(w.loops)-n)]
	to := &l.continues
	if name == "break" {
		to = &l.breaks
	}
	w.joinInto(to, s)
	s.dead = true
}

func (w *walker) joinInto(to **state, s *state) (changed bool) {
	if *to == nil {
		*to = w.fork(s)
		return true
	}
	return w.join(*to, s)
}
