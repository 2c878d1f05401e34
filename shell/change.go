package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/shell/texts"
)

// pointee returns the name of the variable, or the number of the argument, that ${!name} stands for; "" if that is not
// known.
func (w *walker) pointee(p *syntax.ParamExp, s *state) string {
	isIndirect := p.Excl && p.Names == 0
	if !isIndirect || w.posix || !plainExpansion(p) {
		return ""
	}
	v, set := w.operandOf(p.Param.Value, s)
	if set != yes || !texts.IsInteger(v.text) && !syntax.ValidName(v.text) {
		return ""
	}
	return v.text
}

// keepValue keeps the value that an expansion changes in a way that is not followed.
func (w *walker) keepValue(p *syntax.ParamExp, s *state) {
	if p.Param != nil {
		v, _ := w.operandOf(p.Param.Value, s)
		text, _ := texts.ANSIC(v.text)
		w.keep(v.text + " " + text)
		w.scan(v.text)
	}
}

// changed adds a value that an expansion has changed to a text. If that is not certain, only rules that deny hold for it.
func (w *walker) changed(text string, certain bool, b *builder, s *state, quoted bool) {
	if certain && !w.posix {
		b.value(value{text: text}, quoted, s)
		return
	}
	w.keep(text)
	b.unknown(quoted)
}

// rewrites reports whether an expansion replaces a part of a value, or is a part of it that decimal numbers give.
func rewrites(p *syntax.ParamExp) bool {
	if p.Slice == nil {
		return p.Repl != nil
	}
	offset, ok := p.Slice.Offset.(*syntax.Word)
	length, ok2 := p.Slice.Length.(*syntax.Word)
	ends := p.Slice.Length == nil || ok2 && texts.IsInteger(length.Lit())
	return ok && texts.IsInteger(offset.Lit()) && ends
}

func (w *walker) rewritten(p *syntax.ParamExp, b *builder, s *state, quoted bool) {
	v, _ := w.operandOf(p.Param.Value, s)
	if p.Repl != nil {
		old, by := w.wordInside(p.Repl.Orig, s), w.wordInside(p.Repl.With, s)
		text, ok := texts.Replaced(v.text, old.text, by.text, p.Repl.All)
		known := v.known() && old.known() && by.known()
		w.changed(text, ok && known, b, s, quoted)
		return
	}
	from, length := atoi(p.Slice.Offset.(*syntax.Word).Lit()), len(v.text)
	if word, ok := p.Slice.Length.(*syntax.Word); ok {
		length = atoi(word.Lit())
	}
	text, ok := texts.Cut(v.text, from, length)
	w.changed(text, ok && v.known(), b, s, quoted)
}
