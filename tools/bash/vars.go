package bash

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/policy"
)

// assign walks one assignment. exported says that commands will see it.
func (w *walker) assign(as *syntax.Assign, s *state, exported bool) {
	if as.Name == nil {
		w.opaque("the name of a variable is computed", w.text(as))
		return
	}
	name := as.Name.Value
	v := value{}
	if as.Value != nil {
		v = w.assigned(as.Value, s)
		v.number = isNumeric(as) && v.dynamic
	}
	if as.Array != nil || as.Index != nil {
		w.arrays[name] = true
	}
	if as.Array != nil {
		for _, e := range as.Array.Elems {
			if _, plain := plainText(e.Value); plain && e.Index == nil {
				continue
			}
			if w.steps--; w.steps <= 0 {
				break
			}
			if e.Index != nil {
				w.index(e.Index, s)
			}
			w.word(e.Value, s)
		}
		v = value{dynamic: true}
	}
	if as.Index != nil {
		w.index(as.Index, s)
		v = value{dynamic: true}
	}
	if as.Append {
		old := s.vars[name]
		w.steps -= len(old.text) / 64 // a long value is copied
		v = value{text: old.text + v.text, dynamic: old.dynamic || v.dynamic || old.glob || v.glob}
		if old.dynamic || old.glob {
			v.text = ""
		}
	}
	w.setVar(name, v, s, exported)
}

// index walks an array's index. Anything but a number is evaluated by bash.
func (w *walker) index(x syntax.ArithmExpr, s *state) {
	if word, ok := x.(*syntax.Word); !ok || !plainIndex(word.Lit()) {
		w.opaque("an array's index is evaluated", w.text(x))
	}
}

// assigned expands the value of an assignment: it is not split, and no pattern.
func (w *walker) assigned(wd *syntax.Word, s *state) value {
	if strings.Contains(wd.Lit(), ":~") {
		w.word(wd, s)
		return value{dynamic: true} // ~ is expanded after each colon
	}
	b := &builder{}
	for i, p := range wd.Parts {
		if lit, ok := p.(*syntax.Lit); ok && i == 0 && strings.HasPrefix(lit.Value, "~") {
			w.tilde(lit.Value, len(wd.Parts) == 1, b, s)
			continue
		}
		if lit, ok := p.(*syntax.Lit); ok {
			b.literal(unescape(lit.Value, false), true)
			continue
		}
		quoted := true
		if pe, ok := p.(*syntax.ParamExp); ok && pe.Param != nil && s.vars[pe.Param.Value].glob && len(wd.Parts) == 1 {
			return s.vars[pe.Param.Value]
		}
		w.part(p, b, s, quoted)
	}
	b.cut()
	switch len(b.fields) {
	case 0:
		return value{}
	case 1:
		f := b.fields[0]
		return value{text: f.text, dynamic: f.dynamic, glob: f.glob}
	}
	return value{dynamic: true}
}

// setVar records that a variable has a new value, and an effect if commands see
// it or if it changes the shell itself.
func (w *walker) setVar(name string, v value, s *state, exported bool) {
	if _, inherited := w.env[name]; inherited || exported || policy.IsDangerousEnv(name) {
		w.add(policy.Effect{Kind: policy.Env, Name: name, Source: name})
	}
	w.changes++
	w.steps--
	if why := w.refusal(name, v); why != "" {
		w.opaque(why, name)
	}
	switch {
	case shellNames[name] || numericNames[name]:
		return
	case w.doubts.any():
		v = value{dynamic: true, number: v.isNumeric() && s.vars[name].isNumeric()}
	case len(v.text) > maxScript:
		v = value{dynamic: true}
	}
	s.vars[name] = v
}

// declare walks export, declare, local, readonly and typeset.
func (w *walker) declare(c *syntax.DeclClause, s *state) {
	exported, readonly, array := c.Variant.Value == "export", c.Variant.Value == "readonly", false
	for _, as := range c.Args {
		if w.steps <= 0 {
			break
		}
		if as.Name == nil {
			flags := w.declareFlags(c, as, s)
			exported = exported || strings.Contains(flags, "x")
			readonly = readonly || strings.Contains(flags, "r")
			array = array || strings.ContainsAny(flags, "aA")
			continue
		}
		name := as.Name.Value
		if as.Value != nil && (array || w.arrays[name]) {
			w.opaque("the text of an array is evaluated", w.text(c))
		}
		if as.Naked {
			if exported {
				w.setVar(name, s.vars[name], s, true)
			} else if c.Variant.Value == "local" {
				s.vars[name] = value{dynamic: true}
			}
		} else {
			w.assign(as, s, exported)
		}
		w.scope(c.Variant.Value, name, s)
		if array {
			w.arrays[name] = true
		}
		if readonly {
			w.readonly[name] = true
		}
	}
}

// declareFlags returns the flags in a word of declare that names no variable.
func (w *walker) declareFlags(c *syntax.DeclClause, as *syntax.Assign, s *state) string {
	flag := w.single(as.Value, s)
	switch {
	case flag.dynamic || !strings.HasPrefix(flag.text, "-") && !strings.HasPrefix(flag.text, "+"):
		w.opaque("the name of a variable is computed", w.text(c))
		return ""
	case strings.Trim(flag.text[1:], "xrgaAp") != "":
		w.opaque("this kind of variable is evaluated, or changed when it is set", w.text(c))
	}
	return flag.text[1:]
}

// scope records that a variable may be one of a function, which ends with it.
// Outside of functions, local is an error and assigns nothing.
func (w *walker) scope(variant, name string, s *state) {
	switch {
	case len(w.calls) > 0 && variant != "export" && variant != "readonly":
		w.locals[name] = true
	case variant == "local":
		s.vars[name] = value{dynamic: true}
	}
}

// arithmetic walks an expression. Bash evaluates what variables hold, so only
// numbers and variables known to be numbers are followed.
func (w *walker) arithmetic(x syntax.ArithmExpr, s *state) {
	if w.steps--; w.steps <= 0 || !w.enter() {
		return
	}
	defer w.leave()
	switch x := x.(type) {
	case *syntax.Word:
		w.operand(x, s)
	case *syntax.ParenArithm:
		w.arithmetic(x.X, s)
	case *syntax.UnaryArithm:
		w.arithmetic(x.X, s)
		w.changeNumber(x.Op == syntax.Inc || x.Op == syntax.Dec, x.X, s)
	case *syntax.BinaryArithm:
		w.divides(x)
		if x.Op != syntax.Assgn {
			w.arithmetic(x.X, s)
		} else if arithmeticName(x.X) == "" {
			w.opaque("arithmetic evaluates text", w.text(x))
		}
		w.arithmetic(x.Y, s)
		w.changeNumber(isAssignment(x.Op), x.X, s)
	default:
		w.opaque("arithmetic evaluates text", w.text(x))
	}
}

// operand walks a number or a variable in arithmetic.
func (w *walker) operand(x *syntax.Word, s *state) {
	name := x.Lit()
	if len(x.Parts) == 1 {
		switch p := x.Parts[0].(type) {
		case *syntax.ArithmExp:
			w.arithmetic(p.X, s)
			return
		case *syntax.ParamExp:
			if plainExpansion(p) && w.oddExpansion(p) == "" {
				name = "$" + p.Param.Value
			}
		}
	}
	if !isInteger(name) && !w.holdsNumber(strings.TrimPrefix(name, "$"), s) {
		w.word(x, s)
		w.opaque("arithmetic evaluates the text of a variable", w.text(x))
	}
}

// holdsNumber reports whether a variable is empty or certainly a number.
func (w *walker) holdsNumber(name string, s *state) bool {
	switch {
	case name == "" || isNumber(name): // no name, or an argument
		return false
	case numericNames[name] || len(name) == 1 && strings.Contains("#?$!", name):
		return true
	case shellNames[name] || !syntax.ValidName(name):
		return false
	}
	return s.vars[name].isNumeric()
}

// changeNumber records that arithmetic sets a variable.
func (w *walker) changeNumber(changes bool, x syntax.ArithmExpr, s *state) {
	if name := arithmeticName(x); changes && name != "" {
		w.setVar(name, value{dynamic: true, number: true}, s, false)
	} else if changes {
		w.opaque("arithmetic evaluates text", w.text(x))
	}
}

// arithmeticName returns the variable an expression is, or "".
func arithmeticName(x syntax.Node) string {
	if word, ok := x.(*syntax.Word); ok && syntax.ValidName(word.Lit()) {
		return word.Lit()
	}
	return ""
}

// isAssignment reports whether an operator sets its left side.
func isAssignment(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	}
	return false
}

// test walks [[ … ]].
func (w *walker) test(x syntax.TestExpr, s *state) {
	if !w.enter() {
		return
	}
	defer w.leave()
	switch x := x.(type) {
	case *syntax.Word:
		w.word(x, s)
	case *syntax.ParenTest:
		w.test(x.X, s)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			w.opaque("[[ -v ]] evaluates its operand", w.text(x))
		}
		w.test(x.X, s)
	case *syntax.BinaryTest:
		w.test(x.X, s)
		w.test(x.Y, s)
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			w.numbers(x, s)
		}
	default:
		w.opaque("this test is not followed", w.text(x))
	}
}

// numbers checks both sides of a numeric comparison, which bash evaluates.
func (w *walker) numbers(x *syntax.BinaryTest, s *state) {
	for _, side := range []syntax.TestExpr{x.X, x.Y} {
		word, ok := side.(*syntax.Word)
		if !ok {
			w.opaque("arithmetic evaluates text", w.text(x))
			continue
		}
		if len(word.Parts) == 1 {
			if q, ok := word.Parts[0].(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
				word = &syntax.Word{Parts: q.Parts}
			}
		}
		w.operand(word, s)
	}
}
