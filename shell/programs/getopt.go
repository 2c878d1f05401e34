package programs

import (
	"slices"
	"strings"
)

type getopt struct {
	reader
	c        Command
	spec     *spec
	stop     int // number of operands before a command; -1: no command
	operands int
	between  []Word // options inside the subcommand
}

// stopsAt returns the number of operands before a command that the program runs, or -1 if it runs none.
func (s *spec) stopsAt() int {
	if s.has("shell") {
		return 0
	}
	for _, f := range s.forms {
		for i, role := range f.roles {
			if role == "command*" {
				return i
			}
		}
	}
	return -1
}

// read parses words from index shift of argv. It returns the number before a started command.
func (g *getopt) read(words []Word, shift int) int {
	variables := g.spec.has("variables")
	if g.stop < 0 {
		g.c.Words = slices.Grow(g.c.Words, len(words))
		g.c.Flags = slices.Grow(g.c.Flags, min(flagsIn(words), maxFlags/4))
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case i == 0 && g.spec.has("bundled") && w.isBundle():
			i += g.old(words, shift)
		case !w.Dynamic && w.Text == "--":
			g.c.Flags = append(g.c.Flags, Flag{Name: "--", At: shift + i})
			return g.literal(words, i+1)
		case w.flagLike():
			n, started := g.flag(words[i:], shift+i)
			if i += n; started {
				return i + 1
			}
			g.mayBeOperand(w, shift+i)
		case variables && w.setsVariables():
		case g.stop == g.operands:
			return i
		default:
			g.operand(w, shift+i)
		}
		if w.Many && g.stop >= 0 {
			g.opaque("a word that may become several comes before the command")
		}
	}
	return len(words)
}

func (g *getopt) operand(w Word, at int) {
	g.c.Words = append(g.c.Words, w)
	if g.operands++; g.nested != namesOnly {
		g.c.wordAt = append(g.c.wordAt, at)
	}
	if w.Many {
		g.several(at)
	}
}

// mayBeOperand records that an unknown word may be an operand instead of a flag.
func (g *getopt) mayBeOperand(w Word, at int) {
	switch {
	case w.Many:
		g.several(at)
	case w.Dynamic && w.Text == "":
		g.c.Words = append(g.c.Words, w)
		g.operands++
	}
}

// setsVariables reports whether the word is an assignment for env, or "-".
func (w Word) setsVariables() bool {
	return w.Text == "-" && !w.Dynamic || strings.Contains(w.Text, "=")
}

// isBundle reports whether the word may be flags bundled without a dash.
func (w Word) isBundle() bool {
	return !w.Many && strings.Trim(w.Text[:min(1, len(w.Text))], "-") != ""
}

// old parses flags bundled without a dash, such as cfI of tar, whose values follow in the order of the letters. It
// returns the number of values.
func (g *getopt) old(words []Word, at int) (n int) {
	text := words[0].Text
	for i := range min(len(text), maxFlags/2) {
		f := Flag{Name: "-" + text[i:i+1], At: at, spec: g.spec.flag("-" + text[i:i+1])}
		if f.spec != nil {
			f.Name = f.spec.name
			taken, _ := g.take(&f, f.spec.values, words[1+n:])
			n += taken
		}
		g.c.Flags = append(g.c.Flags, f)
	}
	if words[0].Dynamic {
		g.c.Flags = append(g.c.Flags, Flag{At: at, Dynamic: true})
	}
	return n
}

// several records that a word may become any flags and operands.
func (g *getopt) several(at int) {
	g.c.Flags = append(g.c.Flags, Flag{At: at, Dynamic: true})
	g.c.Words = append(g.c.Words, Word{Dynamic: true, Many: true})
	g.operands++
}

// flagsIn returns an upper limit of the number of flags: one for each letter.
func flagsIn(words []Word) (n int) {
	for _, w := range words {
		switch {
		case strings.HasPrefix(w.Text, "--") || w.Text == "-":
			n++
		case strings.HasPrefix(w.Text, "-"):
			n += len(w.Text) - 1
		}
	}
	return n
}

// literal reads operands from index i on, and returns the index of a started command.
func (g *getopt) literal(words []Word, i int) int {
	if g.stop < 0 {
		g.c.Words = append(g.c.Words, words[i:]...)
		return len(words)
	}
	for ; i < len(words) && g.operands < g.stop; i++ {
		g.c.Words = append(g.c.Words, words[i])
		g.operands++
	}
	return i
}

func (g *getopt) opaque(why string) {
	if g.c.Opaque == "" {
		g.c.Opaque = why
	}
}

const maxFlags = 2048

// full reports whether there are too many flags, and then records that the next ones may be any.
func (g *getopt) full(at int) bool {
	if len(g.c.Flags) < maxFlags {
		return false
	}
	if g.opaque("it has too many flags"); len(g.c.Flags) == maxFlags {
		g.c.Flags = append(g.c.Flags, Flag{At: at, Dynamic: true})
	}
	return true
}

// flag parses words[0]. It returns the number of its values, and whether a command follows.
func (g *getopt) flag(words []Word, at int) (n int, started bool) {
	w := words[0]
	if g.full(at) {
		return 0, false
	}
	if w.Dynamic && !strings.Contains(w.Text, "=") {
		g.c.Flags = append(g.c.Flags, Flag{Name: w.Text, At: at, Dynamic: true})
		if g.stop >= 0 {
			g.opaque("an option of " + g.spec.root().name + " is known only when it runs")
		}
		if len(w.Text) < 2 || w.Text[1] == '-' {
			return 0, false
		}
	}
	name, value, has := strings.Cut(w.Text, "=")
	switch f := g.flagNamed(name); {
	case f != nil || strings.HasPrefix(name, "--") || g.spec.root().has("go"):
		return g.valued(Flag{Name: name, Value: Word{Text: value, Dynamic: w.Dynamic, Many: w.Many}, HasValue: has, At: at, spec: f}, words[1:])
	default:
		return g.bundle(w, words[1:], at)
	}
}

func (g *getopt) flagNamed(name string) *flag {
	if g.spec.root().has("go") {
		name = "-" + strings.TrimLeft(name, "-")
	}
	return g.spec.flag(name)
}

// valued parses a flag that is a whole word, with the words that are its values.
func (g *getopt) valued(f Flag, rest []Word) (n int, started bool) {
	switch {
	case f.spec != nil:
		f.Name = f.spec.name
	case g.spec.root().has("go"):
		f.Name = "-" + strings.TrimLeft(f.Name, "-")
	case len(f.Name) > 2 && g.specified:
		f.also = g.spec.abbreviates(f.Name)
		if len(f.also) == 1 && g.spec.flag(f.also[0]) != nil {
			f.spec, f.Name = g.spec.flag(f.also[0]), f.also[0]
		}
	}
	if f.spec == nil {
		if g.stop >= 0 && (!f.HasValue || g.spec.has("through")) {
			g.opaque("an option of " + g.spec.root().name + " is not known")
		}
		g.c.Flags = append(g.c.Flags, f)
		return 0, false
	}
	n, started = g.take(&f, f.spec.values, rest)
	g.c.Flags = append(g.c.Flags, f)
	return n, started
}

// take assigns values to a flag: an attached one, then words. It returns the number of these words, and
// whether a command follows.
func (g *getopt) take(f *Flag, values string, rest []Word) (n int, started bool) {
	if values == "" || f.spec.only {
		return 0, false
	}
	if f.HasValue {
		if values[0] == '|' {
			return 0, true
		}
		values = values[1:]
		g.many(f, f.Value, f.At)
	}
	for n < len(values) && n < len(rest) {
		if values[n] == '|' {
			return n, true
		}
		if !f.HasValue {
			f.Value, f.HasValue = rest[n], true
		}
		n++
		g.many(f, rest[n-1], f.At+n)
	}
	return n, false
}

// many records that a value of several words may include options or operands.
func (g *getopt) many(f *Flag, value Word, at int) {
	if !value.Many {
		return
	}
	root := g.spec.root()
	if g.stop >= 0 || len(root.unsafe)+len(g.spec.unsafe)+len(root.code) > 0 {
		g.opaque("the value of " + f.Name + " may become several words")
	}
	g.several(at)
}

// bundle parses a word of one-letter flags, such as -xzf of tar, whose last one may have values.
func (g *getopt) bundle(w Word, rest []Word, at int) (n int, started bool) {
	if isNumber(w.Text[1:]) {
		g.c.Flags = append(g.c.Flags, Flag{Name: w.Text, At: at})
		return 0, false
	}
	for i := 1; i < len(w.Text) && !g.full(at); i++ {
		f := Flag{Name: "-" + w.Text[i:i+1], At: at, spec: g.spec.flag("-" + w.Text[i:i+1])}
		// A flag with two letters and a value, such as -TT of zip, precedes one with one letter.
		two := g.spec.flag("-" + w.Text[i:min(i+2, len(w.Text))])
		if i+2 <= len(w.Text) && two != nil && two.values != "" {
			f.spec = two
			i++
		}
		if f.spec == nil || f.spec.values == "" {
			if f.spec != nil {
				f.Name = f.spec.name
			} else if g.stop >= 0 {
				g.opaque("an option of " + g.spec.root().name + " is not known")
			}
			if g.c.Flags = append(g.c.Flags, f); g.spec.has("letters") {
				return 0, false
			}
			continue
		}
		f.Name = f.spec.name
		if i+1 < len(w.Text) {
			f.Value, f.HasValue = Word{Text: strings.TrimPrefix(w.Text[i+1:], "="), Dynamic: w.Dynamic, Many: w.Many}, true
		}
		n, started = g.take(&f, f.spec.values, rest)
		g.c.Flags = append(g.c.Flags, f)
		return n, started
	}
	return 0, false
}

// abbreviates returns the long flags that a name may abbreviate, by their first spelling.
func (s *spec) abbreviates(name string) (out []string) {
	for at := s; at != nil; at = at.parent {
		out = abbreviatedIn(out, at.flags, name)
	}
	if root := s.root(); s == root || !root.has("ordered") {
		out = abbreviatedIn(out, root.globals, name)
	}
	return out
}

func abbreviatedIn(out []string, flags map[string]*flag, name string) []string {
	for full, f := range flags {
		if strings.HasPrefix(full, name) && !slices.Contains(out, f.name) {
			out = append(out, f.name)
		}
	}
	return out
}
