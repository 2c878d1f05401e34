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
	links := linksMade(operands)
	folders := outermost(links)
	out := make([]Operand, 0, 2*len(operands))
	for _, o := range operands {
		if links[o.Word] || strings.HasPrefix(o.Word.Text, "/") {
			out = append(out, o)
			continue
		}
		for _, target := range fromLinks(o.Word, folders) {
			o.Word = target
			out = append(out, o)
		}
	}
	return Usage{Known: true, Operands: out}, true
}

// linksMade returns the operands that are written, and are no targets.
func linksMade(operands []Operand) map[Word]bool {
	links := make(map[Word]bool)
	for _, o := range operands {
		if o.Kind == Write {
			links[o.Word] = true
		}
	}
	for _, o := range operands {
		if o.Kind == Read {
			delete(links, o.Word)
		}
	}
	return links
}

// outermost returns the links but for those that are the name of a target in the
// folder that another one may be, in order.
func outermost(links map[Word]bool) (out []Word) {
	for l := range links {
		dir, _, ok := cutLast(l.Text)
		if !ok || !links[Word{dir, false}] && !links[Word{dir, true}] {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Word) int { return strings.Compare(a.Text, b.Text) })
	return out
}

// maxFolders bounds the folders from which the targets of one ln are meant.
const maxFolders = 8

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
	if len(links) > maxFolders {
		return []Word{{Dynamic: true}}
	}
	for _, l := range links {
		if l.Dynamic {
			add(Word{Dynamic: true})
			continue
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
