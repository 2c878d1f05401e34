package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Tests: [[ … ]], which evaluates numbers, and test and [, which evaluate the name
// after -v.

// condition follows [[ … ]].
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
		if named && (!ok || !plainNames(w.word(operand, s))) {
			w.opaque("[[ -v ]] evaluates its operand", w.text(x))
		} else if !named {
			w.condition(x.X, s)
		}
	case *syntax.BinaryTest:
		w.binaryCondition(x, s)
	default:
		w.opaque("this test is not followed", w.text(x))
	}
}

// binaryCondition follows a test with two sides.
func (w *walker) binaryCondition(x *syntax.BinaryTest, s *state) {
	switch x.Op {
	case syntax.AndTest, syntax.OrTest:
		w.condition(x.X, s)
		skipped := w.fork(s)
		w.condition(x.Y, s)
		w.join(s, skipped)
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		w.numbers(x, s)
	default:
		w.condition(x.X, s)
		w.condition(x.Y, s)
	}
}

// numbers follows both sides of a numeric comparison, which bash evaluates.
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

// test follows the words of test and [. Only the name after -v is evaluated; a word
// that is not known may be -v, and one that may be several words brings its name.
func (w *walker) test(args []word, source string) {
	for i, a := range args {
		next := word{text: "]"}
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case a.many:
			w.opaque("the words of a test are known only when it runs", source)
			return
		case a.maybe("-v") && i+1 < len(args) && !harmlessName(next):
			w.opaque("a test may evaluate its operand", source)
			return
		}
	}
}

// plainNames reports whether words are names of variables, and of no elements.
func plainNames(words []word) bool {
	return len(words) == 1 && !slices.ContainsFunc(words, func(a word) bool { return !harmlessName(a) })
}

// harmlessName reports whether evaluating a word as a variable's name runs nothing.
func harmlessName(a word) bool {
	return a.number || a.known() && !strings.Contains(a.text, "[")
}
