package programs

import (
	"slices"
	"strings"
)

// links resolves the relative targets of symbolic links: relative to the directory of the link, or
// the last operand if that is a directory.
func (c *Command) links(words []Word) {
	operands := c.Operands
	if !makesSymbolic(words) {
		return
	}
	links := linksMade(operands)
	directories := outermost(links)
	c.Operands = make([]Operand, 0, 2*len(operands))
	for _, o := range operands {
		if links[o.Word] || strings.HasPrefix(o.Word.Text, "/") {
			c.Operands = append(c.Operands, o)
			continue
		}
		for _, target := range fromLinks(o.Word, directories) {
			o.Word = target
			c.Operands = append(c.Operands, o)
		}
	}
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

// outermost returns the links in order, without those that are the name of a target in the
// directory that another one may be.
func outermost(links map[Word]bool) (out []Word) {
	for l := range links {
		dir, _, ok := cutLast(l.Text)
		if !ok || !links[Word{Text: dir, Dynamic: false}] && !links[Word{Text: dir, Dynamic: true}] {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b Word) int { return strings.Compare(a.Text, b.Text) })
	return out
}

// maxFolders bounds the directories to which the targets of one ln may be relative.
const maxFolders = 8

// makesSymbolic reports whether ln makes symbolic links with the targets as written.
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

// fromLinks returns the possible paths of a target: relative to the directory of a link, and to the
// link if that is a directory.
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
			add(Word{Text: "./" + target.Text, Dynamic: target.Dynamic})
		} else if !strings.HasSuffix(l.Text, "/") {
			add(Word{Text: dir + "/" + target.Text, Dynamic: target.Dynamic})
		}
		add(Word{Text: strings.TrimRight(l.Text, "/") + "/" + target.Text, Dynamic: target.Dynamic})
	}
	if len(links) == 0 {
		add(target)
	}
	return out
}

func cutLast(path string) (dir, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}
