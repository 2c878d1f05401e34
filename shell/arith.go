package shell

import (
	"math"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithmetic follows an expression and computes it if it can. Bash evaluates what
// variables contain, so only numbers and variables known to be numbers are followed.
func (w *walker) arithmetic(x syntax.ArithmExpr, s *state) value {
	if w.steps--; w.steps <= 0 || !w.enter() {
		return someNumber()
	}
	defer w.leave()
	switch x := x.(type) {
	case nil:
		return value{text: "0"}
	case *syntax.Word:
		return w.operand(x, s)
	case *syntax.ParenArithm:
		return w.arithmetic(x.X, s)
	case *syntax.UnaryArithm:
		v := w.arithmetic(x.X, s)
		switch {
		case x.Op == syntax.Inc && w.changeNumber(x.X, compute(syntax.Add, v, value{text: "1"}), s), x.Op == syntax.Dec && w.changeNumber(x.X, compute(syntax.Sub, v, value{text: "1"}), s):
			return someNumber()
		case x.Op == syntax.Minus:
			return compute(syntax.Sub, value{text: "0"}, v)
		case x.Op == syntax.Plus:
			return v
		}
		return someNumber()
	case *syntax.BinaryArithm:
		return w.binaryArithmetic(x, s)
	}
	w.opaque("arithmetic evaluates text", w.text(x))
	return someNumber()
}

// binaryArithmetic follows an operator with two sides.
func (w *walker) binaryArithmetic(x *syntax.BinaryArithm, s *state) value {
	w.divides(x, s)
	switch x.Op {
	case syntax.AndArit, syntax.OrArit, syntax.TernQuest, syntax.TernColon:
		// One side may not be evaluated.
		left := w.fork(s)
		w.arithmetic(x.X, left)
		if x.Op != syntax.TernColon {
			*s = *w.fork(left)
		}
		right := w.fork(s)
		w.arithmetic(x.Y, right)
		w.join(s, left)
		w.join(s, right)
		return someNumber()
	case syntax.Assgn:
		if arithmeticName(x.X) == "" {
			w.opaque("arithmetic evaluates text", w.text(x))
		}
		v := w.arithmetic(x.Y, s)
		w.changeNumber(x.X, v, s)
		return v
	}
	left := w.arithmetic(x.X, s)
	right := w.arithmetic(x.Y, s)
	v := compute(x.Op, left, right)
	if isAssignment(x.Op) {
		w.changeNumber(x.X, v, s)
	}
	if x.Op == syntax.Comma {
		return right
	}
	return v
}

// compute computes what is simple.
func compute(op syntax.BinAritOperator, a, b value) value {
	x, ok1 := smallNumber(a)
	y, ok2 := smallNumber(b)
	if !ok1 || !ok2 {
		return someNumber()
	}
	truth := func(t bool) value {
		if t {
			return value{text: "1"}
		}
		return value{text: "0"}
	}
	switch op {
	case syntax.Add, syntax.AddAssgn:
		return value{text: itoa(x + y)}
	case syntax.Sub, syntax.SubAssgn:
		return value{text: itoa(x - y)}
	case syntax.Mul, syntax.MulAssgn:
		return value{text: itoa(x * y)}
	case syntax.Quo, syntax.QuoAssgn:
		if y != 0 {
			return value{text: itoa(x / y)}
		}
	case syntax.Rem, syntax.RemAssgn:
		if y != 0 {
			return value{text: itoa(x % y)}
		}
	case syntax.Lss:
		return truth(x < y)
	case syntax.Gtr:
		return truth(x > y)
	case syntax.Leq:
		return truth(x <= y)
	case syntax.Geq:
		return truth(x >= y)
	case syntax.Eql:
		return truth(x == y)
	case syntax.Neq:
		return truth(x != y)
	}
	return someNumber()
}

// smallNumber reads a number that cannot overflow when it is computed with.
func smallNumber(v value) (int, bool) {
	if !v.known() || !v.isNumeric() {
		return 0, false
	}
	if v.text == "" {
		return 0, true
	}
	n, err := strconv.Atoi(v.text)
	small := n <= math.MaxInt32 && n >= math.MinInt32
	return n, err == nil && small
}

// operand follows a number or a variable in arithmetic.
func (w *walker) operand(x *syntax.Word, s *state) value {
	name := x.Lit()
	if len(x.Parts) == 1 {
		switch p := x.Parts[0].(type) {
		case *syntax.ArithmExp:
			return w.arithmetic(p.X, s)
		case *syntax.ParamExp:
			if w.oddExpansion(p, s) == "" && p.Index == nil {
				name = "$" + p.Param.Value
				if p.Length {
					return w.length(p, s)
				}
				if !plainExpansion(p) {
					name = ""
				}
			}
		}
	}
	if isInteger(name) {
		return value{text: name}
	}
	v, ok := w.numberIn(name, s)
	if !ok {
		v = w.wordInside(x, s)
		ok = name == "" && v.isNumeric() // ${n:-0}
	}
	switch {
	case ok && v.known() && v.text == "":
		return value{text: "0"}
	case ok:
		return v
	}
	w.opaque("arithmetic evaluates the text of a variable", w.text(x))
	return someNumber()
}

// numberIn returns what a name, or a $name, in arithmetic is, if it is empty or
// certainly a number.
func (w *walker) numberIn(name string, s *state) (value, bool) {
	bare, dollar := strings.CutPrefix(name, "$")
	switch {
	case dollar && isNumber(bare):
		v, _ := w.operandOf(bare, s)
		return v, v.isNumeric()
	case bare == "" || isNumber(bare):
		return value{}, false
	case numericNames[bare] || bare == "#" || len(bare) == 1 && strings.Contains("?$!", bare):
		v := w.parameter(bare, s)
		return v, true
	case shellNames[bare] || !syntax.ValidName(bare):
		return value{}, false
	}
	v := s.get(bare)
	return v.value, v.isNumeric() && !v.array
}

// changeNumber records that arithmetic sets a variable. It returns true.
func (w *walker) changeNumber(x syntax.ArithmExpr, v value, s *state) bool {
	if name := arithmeticName(x); name != "" {
		w.setVar(name, v, s, false)
	} else {
		w.opaque("arithmetic evaluates text", w.text(x))
	}
	return true
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
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn,
		syntax.AndBoolAssgn, syntax.OrBoolAssgn, syntax.XorBoolAssgn, syntax.PowAssgn:
		return true
	}
	return false
}

// divides notes arithmetic that may fail.
func (w *walker) divides(x *syntax.BinaryArithm, s *state) {
	switch x.Op {
	case syntax.Quo, syntax.Rem, syntax.QuoAssgn, syntax.RemAssgn, syntax.Pow, syntax.PowAssgn:
	default:
		return
	}
	if word, ok := x.Y.(*syntax.Word); !ok || !isInteger(word.Lit()) || word.Lit() == "0" {
		w.mayStop(s)
	}
}
