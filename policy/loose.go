package policy

import (
	"slices"
	"strings"
)

// loose reports whether the command could be what the pattern means, as asking
// and denying rules need: flags in any order, bundled, abbreviated or spelled by
// a synonym; global options before the subcommand; operands in any position; a
// word that is known only at run time is any word it could become.
func (p *pattern) loose(argv []Word) bool {
	return len(argv) > 0 && p.looseAs(&command{argv: argv, name: baseName(argv[0].Text)})
}

// readings are the ways in which its operands may be taken; see the function.
func (c *command) readings() []sense {
	if c.taken == nil {
		c.taken = slices.Collect(readings(c.name, c.argv[1:]))
	}
	return c.taken
}

// looseAs is loose for a command that is not empty.
func (p *pattern) looseAs(c *command) bool {
	program := c.argv[0]
	if !looseAny(p.tokens[0], Word{c.name, program.Dynamic}) {
		return false
	}
	if program.Dynamic && program.Text == "" {
		return false // an unknown program is Opaque; it is not every program
	}
	subcommand := p.subcommand()
	for _, t := range p.tokens[1:] {
		if strings.HasPrefix(t[0], "-") && !hasFlag(c.name, subcommand, t, c.argv[1:]) {
			return false
		}
	}
	for _, r := range c.readings() {
		if looseOperands(c.name, p.tokens[1:], r.operands()) {
			return true
		}
	}
	return false
}

// looseOperands matches the tokens that are no flags.
func looseOperands(name string, tokens [][]string, operands []Word) bool {
	open := false
	// A program with subcommands has its subcommand first; elsewhere an operand
	// counts wherever it stands.
	next, first := 0, globalOptions[name] != ""
	for _, t := range tokens {
		if strings.HasPrefix(t[0], "-") {
			continue
		}
		if t[0] == "**" {
			open = true
			continue
		}
		i := findOperand(t, operands[next:], first)
		if i < 0 && first && name == "npm" && abbreviates(t, operands) {
			i = 0
		}
		if i < 0 {
			return false
		}
		next, first = next+i+1, false
	}
	// Without ** the pattern names the whole command: more operands are another
	// command. More flags may be spelling, so they are not counted.
	return open || next >= len(operands) || anyDynamic(operands[next:])
}

// operandsOf returns the words that are, or could be, operands.
func operandsOf(words []Word) []Word {
	for i, w := range words {
		if !strings.HasPrefix(w.Text, "-") || w.Text == "-" {
			continue
		}
		out := append(make([]Word, 0, len(words)), words[:i]...)
		literal := false
		for _, w := range words[i:] {
			if w.Text == "--" && !literal {
				literal = true
			} else if literal || !strings.HasPrefix(w.Text, "-") {
				out = append(out, w)
			}
		}
		return out
	}
	return words
}

// findOperand returns where the operand is: at the beginning when first is set.
func findOperand(token []string, operands []Word, first bool) int {
	for i, w := range operands {
		if looseAny(token, w) {
			return i
		}
		if first && !w.Dynamic {
			return -1
		}
	}
	return -1
}

// abbreviates reports whether the first operand may be short for a subcommand:
// npm takes "pub" for "publish".
func abbreviates(token []string, operands []Word) bool {
	for _, t := range token {
		if len(operands) > 0 && len(operands[0].Text) > 1 && strings.HasPrefix(t, operands[0].Text) {
			return true
		}
	}
	return false
}

// looseAny reports whether w is, or could become, one of the alternatives.
func looseAny(token []string, w Word) bool {
	for _, t := range token {
		if w.Dynamic {
			before, _, _ := strings.Cut(t, "*")
			if strings.HasPrefix(before, w.Text) || t != before && strings.HasPrefix(w.Text, before) {
				return true
			}
		} else if t == "**" || t == "<int>" || t == "<ref>" || matchToken(t, w.Text) {
			return true
		}
	}
	return false
}

func anyDynamic(words []Word) bool {
	for _, w := range words {
		if w.Dynamic {
			return true
		}
	}
	return false
}

// subcommand returns the first operand of a pattern, if it is one word.
func (p *pattern) subcommand() string {
	for _, t := range p.tokens[1:] {
		if !strings.HasPrefix(t[0], "-") {
			if len(t) == 1 && !strings.Contains(t[0], "*") {
				return t[0]
			}
			break
		}
	}
	return ""
}

// hasFlag reports whether one of the alternatives of a flag may be among words.
func hasFlag(name, subcommand string, token []string, words []Word) bool {
	for _, t := range token {
		if hasOneFlag(name, subcommand, t, words) {
			return true
		}
		for _, all := range flagSpellings().together(name, subcommand, t) {
			if !slices.ContainsFunc(all, func(f string) bool { return !hasOneFlag(name, subcommand, f, words) }) {
				return true
			}
		}
	}
	return false
}

// hasOneFlag reports whether a flag of a pattern may be among words.
func hasOneFlag(name, subcommand, flag string, words []Word) bool {
	for _, w := range words {
		switch {
		case w.Text == "--" && !w.Dynamic:
			return false
		case w.Dynamic && (w.Text == "" || strings.HasPrefix(w.Text, "-")):
			return true
		case strings.HasPrefix(w.Text, "-") && sameFlag(name, subcommand, flag, w.Text):
			return true
		}
	}
	return false
}

// sameFlag compares a flag of a pattern with one of a command.
func sameFlag(name, subcommand, pattern, word string) bool {
	if matchToken(pattern, word) {
		return true
	}
	if goFlags[name] {
		return sameGoFlag(pattern, word)
	}
	for _, p := range flagSpellings().synonyms(name, subcommand, pattern) {
		switch {
		case strings.HasPrefix(p, "--"):
			flag, _, _ := strings.Cut(word, "=")
			if len(flag) > 2 && strings.HasPrefix(p, flag) {
				return true // an abbreviation is taken as its flag; it may be ambiguous
			}
		case len(p) == 2 && !strings.HasPrefix(word, "--"):
			if strings.Contains(word[1:], p[1:]) {
				return true // bundled
			}
		case p == word:
			return true
		}
	}
	return false
}

// sameGoFlag compares flags of programs for which -flag and --flag are one, and
// that bundle none.
func sameGoFlag(pattern, word string) bool {
	pattern, word = strings.TrimLeft(pattern, "-"), strings.TrimLeft(word, "-")
	name, _, _ := strings.Cut(word, "=")
	return matchToken(pattern, word) || pattern == name
}

// skipGlobals drops the options that stand before a subcommand, with their
// values.
func skipGlobals(name string, words []Word) []Word {
	takes := globalOptions[name]
	for i := 0; i < len(words); i++ {
		w := words[i]
		if name == "cargo" && strings.HasPrefix(w.Text, "+") {
			continue // a toolchain
		}
		if w.Dynamic || !strings.HasPrefix(w.Text, "-") {
			return words[i:]
		}
		if isField(takes, w.Text) {
			i++
		}
	}
	return words
}

// isField reports whether a word is one of a list with single blanks between. It is
// asked for each word of long commands.
func isField(list, word string) bool {
	if word == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(list[at:], word)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(word)
		if (from == 0 || list[from-1] == ' ') && (to == len(list) || list[to] == ' ') {
			return strings.IndexByte(word, ' ') < 0
		}
		at = from + 1
	}
}
