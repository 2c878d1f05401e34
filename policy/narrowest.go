package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/shell/programs"
)

// maxPattern limits proposed patterns, in bytes.
const maxPattern = 400

// maxTried limits the commands for which a rule is proposed, in bytes: a hostile text could make the search slow.
const maxTried = 4 << 10

func size(argv []Word) (n int) {
	for _, w := range argv {
		n += len(w.Text) + 1
	}
	return n
}

// narrowest returns the narrowest rule or variable that allows an effect. ok is false if there is none.
func (p *Policy) narrowest(e Effect) (c Change, ok bool) {
	if size(e.Argv) > maxTried || !utf8.ValidString(e.Canonical+e.Host+e.Name+e.String()) {
		return Change{}, false
	}
	c.File = p.files[0].Name
	switch {
	case e.Kind == Exec && len(e.Argv) > 0 && !e.Argv[0].Dynamic:
		c.Section = "commands"
		c.Rule, ok = allowingCommand(e)
	case e.Kind == Read || e.Kind == Write:
		c.Section, ok = "paths", true
		c.Rule = Rule{Action: Allow, Ops: []Kind{e.Kind}, Paths: []string{literalGlob(e.Canonical, e.Tree)}}
	case e.Kind == Net:
		c.Section, ok = "net", true
		c.Rule = Rule{Action: Allow, Hosts: []string{e.Host}, Ports: known(e.Port), Schemes: known(e.Scheme)}
	case e.Kind == Env && e.Name != "":
		return Change{File: c.File, Section: "env.allow", Texts: []string{e.Name}}, true
	}
	if ok {
		c.Rule = p.titled(c.Rule, e)
	}
	return c, ok && p.suffices(c, e)
}

func known[T comparable](value T) []T {
	if value == *new(T) {
		return nil
	}
	return []T{value}
}

// suffices reports whether a change allows an effect that no ask or deny rule blocks.
func (p *Policy) suffices(c Change, e Effect) bool {
	alone := p.bare()
	alone.defaults, alone.ids = Defaults{}, make(map[string]bool)
	with := compiler{policy: alone, set: alone.sets[0], file: c.File}
	with.layer(File{}.With(c))
	e.Possible = false
	return len(with.errs) == 0 && alone.unblocked(e).action == Allow
}

func (p *Policy) titled(r Rule, e Effect) Rule {
	words := "allow " + e.Kind.String() + " " + baseName(e.Canonical) + " " + e.Host
	if e.Kind == Exec {
		words = "allow " + baseName(e.Argv[0].Text)
		if len(e.Argv) > 1 {
			words += " " + e.Argv[1].Text
		}
	}
	parts := strings.FieldsFunc(strings.ToLower(words), func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789", r) })
	id := strings.Join(parts[:min(len(parts), 4)], "-")
	r.ID = id[:min(len(id), 40)]
	for n := 2; p.ids[r.ID]; n++ {
		r.ID = fmt.Sprintf("%s-%d", id, n)
	}
	return r
}

// allowingCommand returns a rule for a command. Words that cannot be literal become wildcards, unless they are code.
func allowingCommand(e Effect) (Rule, bool) {
	text, ok := patternOf(e.Argv)
	c := programs.Parse(e.Argv)
	if !ok || strings.Contains(text, "*") && c.Code {
		return Rule{}, false
	}
	r := Rule{Action: Allow, Run: []string{text}}
	pat, err := compilePattern(text)
	if err != nil {
		return Rule{}, false
	}
	program := e.Argv[0].Text
	free, ok := pat.matchesAllow(e.Argv)
	for _, at := range c.Unsafe {
		if slices.Contains(free, at) {
			r.PermitFlags = append(r.PermitFlags, e.Argv[at].Text)
		}
	}
	if strings.Contains(program, "/") && !strings.HasPrefix(program, "/") {
		for _, dir := range e.Dirs {
			r.Dirs = append(r.Dirs, escapeMeta(dir))
		}
	}
	return r, ok
}

// patternOf returns the narrowest pattern that matches a command. ok is false if the pattern would be unreadable.
func patternOf(argv []Word) (text string, ok bool) {
	if len(argv) == 0 || argv[0].Dynamic || len(argv) > maxPattern/2 {
		return "", false
	}
	var tokens []string
	for _, w := range argv {
		tokens = append(tokens, tokenOf(w))
	}
	tokens = slices.CompactFunc(tokens, func(a, b string) bool { return a == "**" && a == b })
	text = strings.Join(tokens, " ")
	return text, len(text) <= maxPattern && !strings.Contains(tokens[0], "*")
}

func tokenOf(w Word) string {
	if w.Dynamic {
		return "**"
	}
	i := strings.IndexAny(w.Text, "*{}\n\r\x00")
	switch {
	case i < 0:
		return quoted(w.Text)
	case w.Text[0] != '-':
		return "*"
	}
	known, _, _ := strings.Cut(w.Text[:i], "/")
	return quoted(known + "*")
}

func quoted(word string) string {
	switch {
	case word != "" && !strings.ContainsAny(word, " \t'\"\\#;|&<>()$`"):
		return word
	case !strings.Contains(word, "'"):
		return "'" + word + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

func literalGlob(path string, tree bool) string {
	path = escapeMeta(path)
	if tree {
		return strings.TrimSuffix(path, "/") + "/**"
	}
	return path
}
