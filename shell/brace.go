package shell

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/shell/texts"
)

func (w *walker) braces(wd *syntax.Word) (alternatives [][]syntax.WordPart, why string) {
	units, why := w.units(wd)
	if why != "" {
		return nil, why
	}
	lists, why := texts.ExpandBraces(units, maxBraces)
	if why != "" {
		return nil, why
	}
	size := 0
	for _, list := range lists {
		size += len(list)
		parts := join(list)
		if len(lists) > 1 && newName(parts) {
			return nil, "bash expands braces before the variable: write ${NAME}"
		}
		if len(lists) > 1 && len(parts) > 0 && strings.Contains(literalOf(parts[0]), "=~") {
			return nil, "braces make an assignment with ~: write $HOME"
		}
		alternatives = append(alternatives, parts)
	}
	w.steps -= size / 64
	return alternatives, ""
}

func (w *walker) units(wd *syntax.Word) (out []texts.Unit, why string) {
	for _, p := range wd.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			if w.oddInBraces(p) {
				return nil, "bash expands braces inside of this part, too: write the words out"
			}
			out = append(out, texts.Unit{Part: p})
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			c := lit.Value[i]
			if c != '\\' || i+1 == len(lit.Value) {
				out = append(out, texts.Unit{Char: c})
				continue
			}
			_, size := utf8.DecodeRuneInString(lit.Value[i+1:])
			out = append(out, texts.Unit{Part: &syntax.Lit{Value: lit.Value[i : i+1+size]}})
			i += size
		}
	}
	return out, ""
}

func (w *walker) oddInBraces(p syntax.WordPart) (odd bool) {
	switch p := p.(type) {
	case *syntax.ExtGlob:
		return true
	case *syntax.ArithmExp:
		return p.Bracket
	case *syntax.SglQuoted:
		return p.Dollar && strings.Contains(p.Value, `\'`)
	case *syntax.ParamExp, *syntax.DblQuoted:
		syntax.Walk(p, func(n syntax.Node) bool {
			if pe, ok := n.(*syntax.ParamExp); ok && !pe.Short {
				text := w.text(pe)
				odd = odd || len(text) < 3 || strings.ContainsAny(text[2:len(text)-1], "{}'\"\\`")
			}
			return !odd
		})
	}
	return odd
}

func join(list []texts.Unit) (parts []syntax.WordPart) {
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			parts = append(parts, &syntax.Lit{Value: text.String()})
			text.Reset()
		}
	}
	for _, u := range list {
		if lit, ok := u.Part.(*syntax.Lit); ok {
			text.WriteString(lit.Value) // an escaped character
		} else if u.Part != nil {
			flush()
			parts = append(parts, u.Part)
		} else {
			text.WriteByte(u.Char)
		}
	}
	flush()
	return parts
}

// newName reports whether brace expansion changes which variable a $ names: bash expands $a{b,c} to $ab $ac.
func newName(parts []syntax.WordPart) bool {
	for i, p := range parts {
		last := i+1 == len(parts)
		text := literalOf(p)
		if n := strings.IndexByte(texts.Unescape(text, false), '$'); n >= 0 && (n+1 < len(text) || !last) {
			return true
		}
		pe, ok := p.(*syntax.ParamExp)
		if !ok || !pe.Short || last {
			continue
		}
		next := literalOf(parts[i+1]) + "."
		named := pe.Param != nil && syntax.ValidName(pe.Param.Value)
		if next[0] == '[' || named && syntax.ValidName("_"+next[:1]) {
			return true
		}
	}
	return false
}
