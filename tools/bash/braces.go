package bash

import (
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// nameInBraces reports a $name inside braces: what follows them becomes a part of
// the name, as in {a,$x}y.
func nameInBraces(parts []syntax.WordPart, inside bool) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.ParamExp:
			if inside && p.Short {
				return true
			}
		case *syntax.BraceExp:
			for _, elem := range p.Elems {
				if nameInBraces(elem.Parts, true) {
					return true
				}
			}
		}
	}
	return false
}

// braces returns the alternatives that braces in a word stand for.
func braces(parts []syntax.WordPart) ([][]syntax.WordPart, bool) {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			for i := range out {
				out[i] = append(out[i], p) // each has its own array
			}
			continue
		}
		choices, ok := braceChoices(b)
		if !ok || len(out)*len(choices) > maxBraces || len(out)*len(choices)*len(parts) > 8*maxBraces {
			return nil, false
		}
		var next [][]syntax.WordPart
		for _, o := range out {
			for _, c := range choices {
				next = append(next, slices.Concat(o, c))
			}
		}
		out = next
	}
	return out, true
}

// braceChoices returns the alternatives of one pair of braces.
func braceChoices(b *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	if b.Sequence {
		return sequence(b)
	}
	var out [][]syntax.WordPart
	for _, elem := range b.Elems {
		inner, ok := braces(elem.Parts)
		if !ok || len(out)+len(inner) > maxBraces {
			return nil, false
		}
		out = append(out, inner...)
	}
	return out, true
}

// sequence returns the alternatives of {1..5} or {a..e}. Steps and padding are
// rare, and not followed.
func sequence(b *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	if len(b.Elems) != 2 {
		return nil, false
	}
	first, last := b.Elems[0].Lit(), b.Elems[1].Lit()
	text := strconv.Itoa
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	switch {
	case isLetter(first) && isLetter(last):
		from, to = int(first[0]), int(last[0])
		text = func(n int) string { return string(rune(n)) }
	case err1 != nil || err2 != nil || strconv.Itoa(from) != first || strconv.Itoa(to) != last:
		return nil, false
	}
	step := 1
	if from > to {
		step = -1
	}
	if n := (to - from) * step; n >= maxBraces || n < 0 {
		return nil, false
	}
	out := [][]syntax.WordPart{{&syntax.Lit{Value: text(from)}}}
	for n := from; n != to; {
		n += step
		out = append(out, []syntax.WordPart{&syntax.Lit{Value: text(n)}})
	}
	return out, true
}

// isLetter reports whether s is one small letter: {A..z} passes through quotes
// and backslashes.
func isLetter(s string) bool { return len(s) == 1 && s[0] >= 'a' && s[0] <= 'z' }
