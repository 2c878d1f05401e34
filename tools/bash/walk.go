package bash

import (
	"maps"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
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
	w.steps -= 1 + len(s.vars)/64 // copies of the state cost time
	if w.steps <= 0 || !w.enter() {
		return
	}
	defer w.leave()
	if stmt.Background || stmt.Coprocess || stmt.Disown {
		s = s.clone()
	}
	for _, r := range stmt.Redirs {
		w.steps--
		w.redirect(r, s)
	}
	if w.mayFail(stmt.Redirs) {
		before := s.clone()
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
		w.apart(func() { w.stmts(c.Stmts, s.clone()) })
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
		before := s.clone()
		w.stmt(c.Y, s)
		s.settle()
		s.merge(before)
		s.failed = failed
	case syntax.OrStmt:
		w.stmt(c.X, s)
		after := s.clone()
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
		w.apart(func() { w.stmt(c.X, s.clone()) })
		w.apart(func() { w.stmt(c.Y, s.clone()) })
	default:
		w.opaque("this operator is not followed", w.text(c))
	}
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
	before, broken := s.clone(), w.doubts.broken
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
	other := s.clone()
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
	before := s.clone()
	for _, item := range items {
		w.setVar(name, value{text: item.text, dynamic: item.dynamic, glob: item.glob}, s, false)
		w.loop(s, func(s *state) { w.stmts(c.Do, s) })
	}
	s.merge(before)
}

// caseClause walks every branch of a case, from the same beginning.
func (w *walker) caseClause(c *syntax.CaseClause, s *state) {
	w.word(c.Word, s)
	before := s.clone()
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			if p.Lit() != "" {
				continue
			}
			// A pattern is expanded if none before it matched, and may assign.
			earlier := before.clone()
			w.word(p, before)
			before.merge(earlier)
		}
		w.steps -= 1 + len(s.vars)/64
		branch := before.clone()
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
	w.changes++
	if len(w.traps) > 0 {
		w.opaque("a trap may call the function", w.text(c))
	}
	s.funcs[c.Name.Value] = c.Body
	if w.doubts.any() {
		s.funcs[c.Name.Value] = nil
	}
}

// reservedNames are commands the parser treats as syntax, and those whose meaning
// the analysis relies on.
var reservedNames = map[string]bool{
	"declare": true, "typeset": true, "local": true, "export": true, "readonly": true, "nameref": true, "let": true,
	"time": true, "coproc": true, "eval": true, "exec": true, "command": true, "builtin": true, "cd": true, "pushd": true,
	"popd": true, "set": true, "unset": true, "shopt": true, "source": true, ".": true, "trap": true, "exit": true, "return": true,
	"break": true, "continue": true, "command_not_found_handle": true,
}

// redirect walks one redirection.
func (w *walker) redirect(r *syntax.Redirect, s *state) {
	if r.N != nil && len(r.N.Value) > 0 && r.N.Value[0] == '{' {
		w.opaque("a redirection sets a variable", w.text(r))
	}
	if r.Hdoc != nil {
		w.word(r.Hdoc, s)
	}
	if r.Word == nil {
		return
	}
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		return // the word is only the mark of the end
	}
	w.target(r.Op, w.single(r.Word, s), s, w.text(r))
}

// target records what is opened by a redirection.
func (w *walker) target(op syntax.RedirOperator, wd word, s *state, source string) {
	if wd.dynamic && !wd.glob && op != syntax.WordHdoc && mayBeSocket(wd.text) {
		w.add(policy.Effect{Kind: policy.Net, Source: source})
	}
	if wd.text == "" && op != syntax.WordHdoc {
		wd.dynamic = true // bash refuses an empty name; a mistake is shown as one
	}
	switch op {
	case syntax.WordHdoc:
	case syntax.RdrIn:
		w.path(policy.Read, wd, s, source)
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		w.path(policy.Write, wd, s, source)
	case syntax.RdrInOut:
		w.path(policy.Read, wd, s, source)
		w.path(policy.Write, wd, s, source)
	case syntax.DplOut, syntax.DplIn:
		if isDescriptor(wd) {
			return
		}
		if op == syntax.DplIn {
			w.opaque("a descriptor is computed", source)
			return
		}
		w.path(policy.Write, wd, s, source)
	default:
		w.opaque("this redirection is not followed", source)
	}
}

// isDescriptor reports whether the word after >& or <& is a descriptor or "-".
func isDescriptor(wd word) bool {
	if wd.dynamic || wd.text == "" {
		return false
	}
	for i, r := range wd.text {
		if (r < '0' || r > '9') && (r != '-' || i != len(wd.text)-1) {
			return false
		}
	}
	return true
}

// changed returns the variables that a piece of script may change when it runs
// in state s: those it assigns, and those of the functions it might call.
func (w *walker) changed(n syntax.Node, s *state) map[string]bool {
	names := maps.Clone(w.assigns(n))
	for _, body := range s.funcs {
		if body != nil {
			for name, text := range w.assigns(body) {
				names[name] = names[name] || text
			}
		}
	}
	if names[anyName] {
		for name := range s.vars {
			names[name] = true
		}
	}
	delete(names, anyName)
	return names
}

// assigns remembers the answers of assigned.
func (w *walker) assigns(n syntax.Node) map[string]bool {
	names, ok := w.names[n]
	if !ok {
		names = assigned(n)
		w.names[n] = names
	}
	return names
}

// anyName stands for every variable.
const anyName = "*"

// assigned returns the variables that a piece of script may set: true for those
// that may be set to text, false for those that are only set to numbers.
func assigned(n syntax.Node) map[string]bool {
	names := make(map[string]bool)
	number := func(name string) { names[name] = names[name] || false }
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && isNumeric(n) {
				number(n.Name.Value)
			} else if n.Name != nil {
				names[n.Name.Value] = true
			}
		case *syntax.WordIter:
			names[n.Name.Value] = true
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil {
				names[n.Param.Value] = true
			}
		case *syntax.CallExpr:
			calledAssigns(n, names)
		case *syntax.BinaryArithm:
			number(arithmeticName(n.X))
		case *syntax.UnaryArithm:
			number(arithmeticName(n.X))
		}
		return true
	})
	return names
}

// isNumeric reports whether an assignment can only give a number.
func isNumeric(as *syntax.Assign) bool {
	if as.Value == nil || as.Append || as.Index != nil || len(as.Value.Parts) != 1 {
		return false
	}
	_, arithmetic := as.Value.Parts[0].(*syntax.ArithmExp)
	if p, ok := as.Value.Parts[0].(*syntax.ParamExp); ok && p.Param != nil && plainExpansion(p) && listed("? # $ !", p.Param.Value) {
		return true
	}
	return arithmetic || isInteger(as.Value.Lit())
}

// calledAssigns adds the variables that a simple command may set: any word of
// read x, printf -v x, getopts o x, mapfile x may be a name.
func calledAssigns(n *syntax.CallExpr, names map[string]bool) {
	if len(n.Args) == 0 {
		return
	}
	switch name := unescape(n.Args[0].Lit(), false); {
	case name == "" || name == "eval" || name == "." || name == "source" || name == "trap":
		names[anyName] = true
	case setsVariables[name]:
		for _, arg := range n.Args[1:] {
			names[arg.Lit()] = true
		}
	}
}

// setsVariables are the builtins whose words name variables they set.
var setsVariables = map[string]bool{
	"read": true, "printf": true, "getopts": true, "mapfile": true, "readarray": true, "unset": true, "wait": true, "command": true, "builtin": true,
}
