package programs

import (
	"slices"
	"strings"
)

// MayBe reports whether a flag g of a command may be the flag f of a pattern.
func (f Flag) MayBe(g Flag) bool {
	sets := g.spec != nil && slices.Contains(g.spec.sets, f.Name)
	switch {
	case g.Dynamic && (len(g.Name) < 2 || g.Name[1] != '-'):
		return true
	case g.Dynamic:
		return strings.HasPrefix(f.Name, g.Name) || strings.HasPrefix(g.Name, f.Name)
	case sets || f.Name == g.Name || slices.Contains(g.also, f.Name):
		return true
	case strings.Contains(f.Name, "*"):
		return g.hasSpelling(func(s string) bool { return Matches(f.Name, s) })
	case g.isSpelled(f.Name), f.isSpelled(g.Name):
		return true
	}
	// An abbreviation counts even if it is ambiguous.
	short := strings.HasPrefix(g.Name, "--") && len(g.Name) > 2 && g.spec == nil
	return short && f.hasSpelling(func(s string) bool { return strings.HasPrefix(s, g.Name) })
}

// Words returns the number of words that the flag and its value take; 0 if they are shared or ambiguous.
func (f Flag) Words(argv []Word) int {
	word := argv[f.At].Text
	name, value, attached := strings.Cut(word, "=")
	switch {
	case argv[f.At].Dynamic || f.Dynamic:
	case f.isSpelled(word) && !f.HasValue:
		return 1
	case !f.HasValue:
	case f.isSpelled(word) && f.At+1 < len(argv) && argv[f.At+1] == f.Value:
		return 2
	case attached && f.isSpelled(name) && f.Value.Text == value:
		return 1
	case len(word) > 2 && f.isSpelled(word[:2]) && strings.TrimPrefix(word[2:], "=") == f.Value.Text:
		return 1
	}
	return 0
}

// Together returns lists of flags that together are equivalent to f.
func (f Flag) Together() (lists [][]Flag) {
	if f.spec == nil {
		return nil
	}
	for _, names := range f.spec.both {
		var list []Flag
		for _, name := range names {
			list = append(list, Flag{Name: name})
		}
		lists = append(lists, list)
	}
	return lists
}

func (f Flag) hasSpelling(matches func(string) bool) bool {
	return matches(f.Name) || f.spec != nil && slices.ContainsFunc(f.spec.all, matches)
}

func (f Flag) isSpelled(name string) bool {
	return f.Name == name || f.spec != nil && slices.Contains(f.spec.all, name)
}

// WithStarted returns the words of a command and of those that it starts.
func (c *Command) WithStarted() []Word {
	out := slices.Clip(c.Words)
	for _, run := range c.Runs {
		out = append(out, run.Argv...)
	}
	return out
}

// AddStarted adds the files and hosts of the commands that a command starts.
func (c *Command) AddStarted() {
	c.Operands = c.Files()
	c.Prints = slices.DeleteFunc(slices.Clone(c.Prints), func(o Operand) bool { return o.Kind == None })
	for _, run := range c.Runs {
		if len(run.Argv) == 0 || run.Elsewhere {
			continue
		}
		inner := Parse(run.Argv)
		c.Suspects = append(c.Suspects, inner.Suspects...)
		if c.Prints == nil {
			c.Operands = append(c.Operands, inner.Files()...)
		}
	}
}

// Files returns the operands that are read, written or contacted.
func (c *Command) Files() []Operand {
	return slices.DeleteFunc(slices.Clone(c.Operands), func(o Operand) bool { return o.Kind == None })
}

// Stays reports whether the word expands to at least one word.
func (w Word) Stays() bool {
	mayBeFlag := w.Text == "" || w.Text[0] == '-'
	return !w.Many && !(w.Dynamic && mayBeFlag)
}

// Filled returns the words with an operand in place of each unknown one, or two for one that may become several
// words.
func Filled(argv []Word) []Word {
	filled := make([]Word, 0, len(argv))
	for i, w := range argv {
		if i > 0 && w.Dynamic && w.Text == "" {
			w.Text, w.Dynamic = "…", false
		}
		if w.Many {
			w.Many = false
			filled = append(filled, w)
			w = Word{Text: "…"}
		}
		filled = append(filled, w)
	}
	return filled
}
