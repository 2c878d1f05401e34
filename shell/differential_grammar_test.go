package shell_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

// grammar is described in testdata/differential.grammar.
type grammar struct {
	rules map[string]*rule
}

type rule struct {
	choices [][]piece
	turns   []int // the choices by index, the likely ones more often
}

type piece struct {
	text string
	rule *rule
}

// maxDepth and maxLength bound scripts: beyond, only first alternatives are taken.
const (
	maxDepth  = 9
	maxLength = 300
)

func readGrammar(t testing.TB) grammar {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/differential.grammar"))(t)
	g := grammar{rules: make(map[string]*rule)}
	var current *rule
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		choice, indented := strings.CutPrefix(line, "  ")
		switch {
		case line == "" || line[0] == '#':
		case !indented:
			current = g.named(line)
		default:
			current.add(g, choice)
		}
	}
	for name, r := range g.rules {
		if len(r.choices) == 0 {
			t.Fatalf("the grammar has no rule «%s»", name)
		}
	}
	return g
}

func (g grammar) named(name string) *rule {
	if g.rules[name] == nil {
		g.rules[name] = new(rule)
	}
	return g.rules[name]
}

func (r *rule) add(g grammar, choice string) {
	times := 1
	if number, rest, ok := strings.Cut(choice, "* "); ok {
		if n, err := strconv.Atoi(number); err == nil {
			times, choice = n, rest
		}
	}
	for range times {
		r.turns = append(r.turns, len(r.choices))
	}
	var pieces []piece
	for {
		text, rest, found := strings.Cut(choice, "«")
		pieces = append(pieces, piece{text: text})
		if !found {
			break
		}
		name, after, _ := strings.Cut(rest, "»")
		pieces, choice = append(pieces, piece{rule: g.named(name)}), after
	}
	r.choices = append(r.choices, pieces)
}

func (g grammar) script(seed, number uint64) string {
	m := maker{random: rand.New(rand.NewPCG(seed, number))}
	m.out = &m.text
	m.make(g.rules["script"], 0)
	m.line(false)
	return m.text.String()
}

type maker struct {
	random *rand.Rand
	text   bytes.Buffer
	out    *bytes.Buffer
	later  []string // after the next end of a line
}

func (m *maker) make(r *rule, depth int) {
	choice := r.choices[0]
	if depth < maxDepth && m.text.Len() < maxLength {
		choice = r.choices[r.turns[m.random.IntN(len(r.turns))]]
	}
	for _, p := range choice {
		if p.rule != nil {
			m.make(p.rule, depth+1)
			continue
		}
		for _, letter := range p.text {
			m.letter(letter)
		}
	}
}

func (m *maker) letter(letter rune) {
	switch letter {
	case '⏎':
		m.line(true)
	case '␤':
		m.line(false)
	case '⟦':
		m.out = new(bytes.Buffer)
	case '⟧':
		m.later = append(m.later, m.out.String())
		m.out = &m.text
	default:
		m.out.WriteRune(letter)
	}
}

func (m *maker) line(always bool) {
	if m.out != &m.text {
		m.out.WriteByte('\n')
		return
	}
	if !always && len(m.later) == 0 {
		return
	}
	m.text.WriteByte('\n')
	for _, part := range m.later {
		m.text.WriteString(part)
	}
	m.later = nil
}

const mostTries = 500

// shrink removes parts, long ones first, as long as same holds.
func shrink(script string, same func(string) bool) string {
	tries := 0
	for size := len(script) / 2; size > 0; {
		before := len(script)
		for at := 0; at+size <= len(script); {
			if tries++; tries > mostTries {
				return script
			}
			if try := script[:at] + script[at+size:]; same(try) {
				script = try
				continue
			}
			at += max(size/2, 1)
		}
		if size = min(size, len(script)); size > 1 || len(script) == before {
			size /= 2
		}
	}
	return script
}

func number(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
	return n
}
