package policy

import (
	"slices"
	"strings"
)

// linkUsage describes ln. The relative target of a symbolic link is meant from the
// folder of the link, which is that of the last operand, or that operand itself.
func linkUsage(argv []Word) (Usage, bool) {
	forms, words := table().find(argv)
	if len(forms) == 0 {
		return Usage{}, false
	}
	operands := forms[0].parse(words).operands
	if !makesSymbolic(words) {
		return Usage{Known: true, Operands: operands}, true
	}
	var links []Word
	for _, o := range operands {
		if o.Kind == Write && !slices.ContainsFunc(operands, func(p Operand) bool { return p.Kind == Read && p.Word == o.Word }) {
			links = append(links, o.Word)
		}
	}
	var out []Operand
	for _, o := range operands {
		if slices.Contains(links, o.Word) || strings.HasPrefix(o.Word.Text, "/") {
			out = append(out, o)
			continue
		}
		for _, target := range fromLinks(o.Word, links) {
			o.Word = target
			out = append(out, o)
		}
	}
	return Usage{Known: true, Operands: out}, true
}

// makesSymbolic reports whether ln makes symbolic links whose targets are written
// as they will stand in them.
func makesSymbolic(words []Word) bool {
	symbolic, relative := false, false
	for _, w := range words {
		switch {
		case w.Text == "--" && !w.Dynamic:
			return symbolic && !relative
		case strings.HasPrefix(w.Text, "--"):
			symbolic = symbolic || strings.HasPrefix("--symbolic", w.Text)
			relative = relative || strings.HasPrefix("--relative", w.Text)
		case strings.HasPrefix(w.Text, "-"):
			symbolic = symbolic || strings.ContainsRune(w.Text, 's')
			relative = relative || strings.ContainsRune(w.Text, 'r')
		}
	}
	return symbolic && !relative
}

// fromLinks returns what a target may mean: from the folder of a link, and from the
// link where that is a folder already.
func fromLinks(target Word, links []Word) []Word {
	var out []Word
	add := func(w Word) {
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	for _, l := range links {
		if l.Dynamic {
			add(Word{Dynamic: true})
			continue
		}
		if slices.ContainsFunc(links, func(o Word) bool { return o != l && strings.HasPrefix(l.Text, o.Text+"/") }) {
			continue // the name of a target in the folder o
		}
		if dir, _, ok := cutLast(l.Text); !ok {
			add(Word{"./" + target.Text, target.Dynamic})
		} else if !strings.HasSuffix(l.Text, "/") {
			add(Word{dir + "/" + target.Text, target.Dynamic})
		}
		add(Word{strings.TrimRight(l.Text, "/") + "/" + target.Text, target.Dynamic})
	}
	if len(links) == 0 {
		add(target)
	}
	return out
}

// cutLast cuts a path at its last slash.
func cutLast(path string) (dir, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}
