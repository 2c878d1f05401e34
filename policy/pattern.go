package policy

import (
	"fmt"
	"strings"

	"github.com/google/shlex"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/shell/programs"
)

type pattern struct {
	tokens [][]string // alternatives of each word
	all    []meaning  // for deny matching
}

// compilePattern compiles a pattern such as "go {build,test} **". It rejects comments and operators, which shlex
// accepts, because their author expected a shell.
func compilePattern(text string) (pattern, error) {
	words, err := shlex.Split(text)
	if err != nil {
		return pattern{}, fmt.Errorf("command pattern %q: unbalanced quotes", text)
	}
	if len(words) == 0 {
		return pattern{}, fmt.Errorf("command pattern %q is empty", text)
	}
	if bad := shellSyntax(text); bad != "" {
		return pattern{}, fmt.Errorf("command pattern %q: %q has no meaning in a pattern: write one command's words, with * and **", text, bad)
	}
	var p pattern
	for _, w := range words {
		choices, err := ExpandBraces(w)
		if err != nil {
			return pattern{}, fmt.Errorf("command pattern %q: %v", text, err)
		}
		for _, c := range choices {
			if c != "**" && strings.Contains(c, "**") {
				return pattern{}, fmt.Errorf("command pattern %q: ** must be a word of its own", text)
			}
		}
		p.tokens = append(p.tokens, choices)
	}
	p.all = p.meanings()
	return p, nil
}

// shellSyntax returns what only a shell would understand outside of quotes, or "". <int> and <ref> are patterns.
func shellSyntax(text string) string {
	for _, field := range strings.Fields(quotes().ReplaceAllString(text, "x")) {
		switch {
		case field == "<int>" || field == "<ref>":
		case field[0] == '#' || strings.ContainsAny(field, ";|&<>`$()"):
			return field
		}
	}
	if strings.ContainsAny(text, "\n\r\x00") {
		return "line break"
	}
	return ""
}

var quotes = lazyregexp.New(`(?s)\\.|'[^']*'|"(?:\\.|[^"\\])*"`)

// matchesAllow matches a command. free lists the indexes of the words that only a wildcard matched.
func (p *pattern) matchesAllow(argv []Word) (free []int, ok bool) {
	if len(argv) == 0 || argv[0].Dynamic {
		return nil, false
	}
	for _, t := range p.tokens[0] {
		if t == "**" || t == "*" {
			return allowMatchWords(p.tokens, argv, 0)
		}
		if allowMatchProgram(t, argv[0].Text) {
			return allowMatchWords(p.tokens[1:], argv[1:], 1)
		}
	}
	return nil, false
}

// allowMatchProgram compares programs. Paths must be equal, unless they are in a trusted directory.
func allowMatchProgram(token, program string) bool {
	if strings.Contains(token, "/") {
		return allowMatchPath(token, program)
	}
	if name, ok := programs.System(program); ok && name != "" {
		program = name
	}
	return programs.Matches(token, program)
}

func allowMatchPath(token, word string) bool {
	tokens, words := strings.Split(token, "/"), strings.Split(word, "/")
	if len(tokens) != len(words) {
		return false
	}
	for i := range tokens {
		if words[i] == ".." || !programs.Matches(tokens[i], words[i]) {
			return false
		}
	}
	return true
}

// allowMatchWords matches words in order. at is the index of words[0].
func allowMatchWords(tokens [][]string, words []Word, at int) ([]int, bool) {
	if len(tokens) == 0 {
		return nil, len(words) == 0
	}
	for _, t := range tokens[0] {
		if t == "**" {
			return allowMatchRest(tokens[1:], words, at)
		}
	}
	if len(words) == 0 {
		return nil, false
	}
	for _, t := range tokens[0] {
		if !allowMatchWord(t, words[0]) {
			continue
		}
		if free, ok := allowMatchWords(tokens[1:], words[1:], at+1); ok {
			if strings.Contains(t, "*") {
				free = append(free, at)
			}
			return free, true
		}
	}
	return nil, false
}

// allowMatchRest matches words after a **.
func allowMatchRest(tokens [][]string, words []Word, at int) ([]int, bool) {
	for n := 0; n <= len(words); n++ {
		if len(tokens) == 0 {
			n = len(words)
		}
		if free, ok := allowMatchWords(tokens, words[n:], at+n); ok {
			for i := range n {
				free = append(free, at+i)
			}
			return free, true
		}
	}
	return nil, false
}

// allowMatchWord matches one word. Only ** matches unknown words, and * matches no flags.
func allowMatchWord(token string, w Word) bool {
	if w.Dynamic {
		return false
	}
	switch {
	case token == "*":
		return !strings.HasPrefix(w.Text, "-")
	case token == "<int>":
		return w.Text != "" && strings.Trim(w.Text, "0123456789") == ""
	case token == "<ref>":
		return revision().MatchString(w.Text) && !strings.Contains(w.Text, "..")
	case strings.Contains(token, "*"):
		if strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(token, "-") {
			return false
		}
		if strings.Contains(token, "/") {
			return allowMatchPath(token, w.Text)
		}
	}
	return programs.Matches(token, w.Text)
}

// revision matches git revisions, but no flags or paths.
var revision = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._/~^@-]*$`)
