package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/shell/texts"
)

// arithmetic follows an expression without computing it. Bash evaluates the text of variables as expressions, so only
// variables that hold numbers are followed.
func (w *walker) arithmetic(x syntax.ArithmExpr, s *state) {
	if w.steps--; w.steps <= 0 || !w.enter() {
		return
	}
	defer w.leave()
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		w.operand(x, s)
	case *syntax.ParenArithm:
		w.arithmetic(x.X, s)
	case *syntax.UnaryArithm:
		w.arithmetic(x.X, s)
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			w.setNumber(x.X, someNumber(), s)
		}
	case *syntax.BinaryArithm:
		w.binaryArithmetic(x, s)
	default:
		w.evaluates("arithmetic evaluates text", w.text(x))
	}
}

func (w *walker) binaryArithmetic(x *syntax.BinaryArithm, s *state) {
	op := x.Op.String()
	divisor, ok := x.Y.(*syntax.Word)
	sound := ok && texts.IsInteger(divisor.Lit()) && divisor.Lit() != "0"
	if listed("/ % /= %= ** **=", op) && !sound {
		w.mayStop(s)
	}
	switch {
	case listed("&& || ? :", op): // one side may not run
		left := w.fork(s)
		w.arithmetic(x.X, left)
		if x.Op != syntax.TernColon {
			*s = *w.fork(left)
		}
		right := w.fork(s)
		w.arithmetic(x.Y, right)
		w.join(s, left)
		w.join(s, right)
	case x.Op == syntax.Assgn:
		w.arithmetic(x.Y, s)
		w.setNumber(x.X, numberOf(x.Y), s)
	default:
		w.arithmetic(x.X, s)
		w.arithmetic(x.Y, s)
		if strings.HasSuffix(op, "=") && !listed("== != <= >=", op) {
			w.setNumber(x.X, someNumber(), s)
		}
	}
}

// otherBase matches literal numbers: 7, 0x1f, 010, 16#ff.
var otherBase = lazyregexp.New(`^(?:\d+|0[xX][0-9a-fA-F]+|[1-9]\d?#[0-9a-zA-Z@_]+)$`)

func numberOf(x syntax.ArithmExpr) value {
	if word, ok := x.(*syntax.Word); ok && texts.IsInteger(word.Lit()) {
		return value{text: word.Lit()}
	}
	return someNumber()
}

func (w *walker) operand(x *syntax.Word, s *state) {
	name := x.Lit()
	if len(x.Parts) == 1 {
		switch p := x.Parts[0].(type) {
		case *syntax.ArithmExp:
			w.arithmetic(p.X, s)
			return
		case *syntax.ParamExp:
			if w.oddExpansion(p, s) == "" && p.Index == nil {
				if p.Length {
					return
				}
				if name = "$" + p.Param.Value; !plainExpansion(p) {
					name = ""
				}
			}
		}
	}
	if otherBase().MatchString(name) || w.holdsNumber(name, s) {
		return
	}
	if v := w.wordInside(x, s); name != "" || !v.isNumeric() { // ${n:-0} is one
		w.evaluates("arithmetic evaluates the text of a variable", w.text(x))
	}
}

// holdsNumber reports whether name, or $name, is empty or certainly a number.
func (w *walker) holdsNumber(name string, s *state) bool {
	bare, dollar := strings.CutPrefix(name, "$")
	switch {
	case dollar && texts.IsNumber(bare):
		v, _ := w.operandOf(bare, s)
		return v.isNumeric()
	case bare == "" || texts.IsNumber(bare):
		return false
	case listed(numericNames, bare) || listed("# ? $ !", bare):
		return true
	}
	v := s.get(bare)
	number := v.isNumeric() && !v.array
	return number && syntax.ValidName(bare) && !listed(shellNames, bare)
}

func (w *walker) setNumber(x syntax.ArithmExpr, v value, s *state) {
	if word, ok := x.(*syntax.Word); ok && syntax.ValidName(word.Lit()) {
		w.setVar(word.Lit(), v, s, false)
		return
	}
	w.evaluates("arithmetic evaluates text", w.text(x))
}

func (w *walker) condition(x syntax.TestExpr, s *state) {
	if w.steps--; w.steps <= 0 || !w.enter() {
		return
	}
	defer w.leave()
	switch x := x.(type) {
	case *syntax.Word:
		w.word(x, s)
	case *syntax.ParenTest:
		w.condition(x.X, s)
	case *syntax.UnaryTest:
		operand, ok := x.X.(*syntax.Word)
		named := x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar
		if !named {
			w.condition(x.X, s)
		} else if names := w.word(operand, s); !ok || len(names) != 1 || !harmlessName(names[0]) {
			w.evaluates("[[ -v ]] evaluates its operand", w.text(x))
		}
	case *syntax.BinaryTest:
		w.binaryCondition(x, s)
	default:
		w.opaque("this test is not followed", w.text(x))
	}
}

func (w *walker) binaryCondition(x *syntax.BinaryTest, s *state) {
	switch x.Op {
	case syntax.AndTest, syntax.OrTest:
		w.condition(x.X, s)
		skipped := w.fork(s)
		w.condition(x.Y, s)
		w.join(s, skipped)
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		for _, side := range []syntax.TestExpr{x.X, x.Y} {
			if word, ok := side.(*syntax.Word); ok {
				w.operand(word, s)
			} else {
				w.evaluates("arithmetic evaluates text", w.text(x))
			}
		}
	default:
		w.condition(x.X, s)
		w.condition(x.Y, s)
	}
}

// test follows test and [. -v evaluates an index in its operand.
func (w *walker) test(args []word, source string) {
	for i, a := range args {
		switch {
		case a.many:
			w.opaque("the words of a test are known only when it runs", source)
			return
		case a.maybe("-v") && i+1 < len(args) && !harmlessName(args[i+1]):
			w.evaluates("a test may evaluate its operand", source)
			return
		}
	}
}

func harmlessName(a word) bool {
	return a.surelyNumber() || a.known() && !strings.Contains(a.text, "[")
}
