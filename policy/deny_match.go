package policy

import (
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// Deny matching parses the pattern of an ask or deny rule like a command, by the specification of its program. Flags
// match in any order, bundle and spelling; operands match in order. A word known only at run time matches every word
// that it could become.

type meaning struct {
	command programs.Command
	program string // pattern of the program's name; "": command.Base
	words   []Word // subcommand and operands, except **
	open    bool   // the pattern contains **
}

const maxMeanings = 256

func (p *pattern) meanings() (out []meaning) {
	for _, argv := range spelledOut(p.tokens) {
		c := programs.Spell(argv)
		m := meaning{command: c, open: argv[0].Text == "**"}
		if strings.Contains(argv[0].Text, "*") {
			m.program = argv[0].Text
		}
		for _, w := range c.Words {
			m.take(w)
		}
		m.command.Flags = nil
		for _, f := range c.Flags {
			if f.Name == "--" || f.At == 0 { // not among the words
				continue
			}
			if f.Value.Text == "**" {
				f.HasValue, m.open = false, true
			}
			m.command.Flags = append(m.command.Flags, f)
		}
		for _, run := range c.Runs {
			for _, w := range run.Argv {
				m.take(w)
			}
		}
		out = append(out, m)
	}
	return out
}

func (m *meaning) take(w Word) {
	if w.Text == "**" {
		m.open = true
		return
	}
	m.words = append(m.words, w)
}

// spelledOut returns every combination of alternatives. Beyond maxMeanings it returns only some.
func spelledOut(tokens [][]string) (out [][]Word) {
	out = [][]Word{nil}
	for _, choices := range tokens {
		var next [][]Word
		for _, before := range out {
			for _, text := range choices {
				next = append(next, append(slices.Clip(before), Word{Text: text}))
			}
		}
		out = next[:min(len(next), maxMeanings)]
	}
	return out
}

func (p *pattern) means(c *programs.Command, argv []Word) bool {
	return slices.ContainsFunc(p.all, func(m meaning) bool { return m.means(c, argv) })
}

func (m *meaning) means(c *programs.Command, argv []Word) bool {
	for ; c != nil; c = c.Or {
		if !m.isProgram(c, argv[0]) || !m.flagsIn(c) {
			continue // c.Or is another reading, as of npm --foo x publish
		}
		if m.operandsIn(c, c.Words) || len(c.Runs) > 0 && m.operandsIn(c, c.WithStarted()) {
			return true
		}
	}
	return false
}

func (m *meaning) isProgram(c *programs.Command, program Word) bool {
	switch {
	case m.program == "":
		return m.command.Base == c.Base && !program.Dynamic
	case program.Dynamic:
		return program.Text != "" && mayBecome(m.program, Word{Text: baseName(program.Text), Dynamic: true})
	}
	return programs.Matches(m.program, baseName(program.Text))
}

func (m *meaning) flagsIn(c *programs.Command) bool {
	for _, f := range m.command.Flags {
		if hasFlag(c, f) {
			continue
		}
		hasAll := func(list []programs.Flag) bool {
			return !slices.ContainsFunc(list, func(f programs.Flag) bool { return !hasFlag(c, f) })
		}
		if !slices.ContainsFunc(f.Together(), hasAll) {
			return false
		}
	}
	return true
}

func hasFlag(c *programs.Command, f programs.Flag) bool {
	return slices.ContainsFunc(c.Flags, func(g programs.Flag) bool {
		anyValue := !f.HasValue || !g.HasValue || g.Dynamic
		return f.MayBe(g) && (anyValue || mayBecome(f.Value.Text, g.Value))
	})
}

// operandsIn matches operands in order. A subcommand must be the first; other operands may have words between them.
func (m *meaning) operandsIn(c *programs.Command, operands []Word) bool {
	for n, w := range m.words {
		// Without ** a command with more operands does not match. Flags do not count: they may be spelling.
		last := n+1 == len(m.words) && !m.open
		i := findOperand(w.Text, operands, n == 0 && c.HasSub, last)
		if i < 0 {
			return false
		}
		if operands = operands[i:]; !operands[0].Many { // a word that stands for many may match several
			operands = operands[1:]
		}
	}
	return m.open || len(m.words) > 0 || !slices.ContainsFunc(operands, Word.Stays)
}

// findOperand returns the index of a matching operand: with first only the first one, with last only the last one.
func findOperand(token string, operands []Word, first, last bool) int {
	for i, w := range operands {
		if mayBecome(token, w) && !(last && slices.ContainsFunc(operands[i+1:], Word.Stays)) {
			return i
		}
		if first && !w.Dynamic {
			return -1
		}
	}
	return -1
}

// mayBecome reports whether w is, or could become, a word that token matches.
func mayBecome(token string, w Word) bool {
	return slices.Contains([]string{"**", "<int>", "<ref>"}, token) || w.Many || w.MayMatch(token)
}
