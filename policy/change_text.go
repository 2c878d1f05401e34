package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxPattern bounds the patterns that are proposed, in bytes: a longer one is
// nothing to read, and takes time to try.
const maxPattern = 400

// changeText says what would alter the verdict on an effect, for people: edits
// that have been tried, or why there is none.
func (p *Policy) changeText(e Effect, v verdict) string {
	edits, becomes, ok := p.change(e, v)
	if !ok {
		return "none in the policy: " + p.whyNone(e)
	}
	var parts []string
	for _, ed := range edits {
		parts = append(parts, p.editText(ed, v.rule))
	}
	if !utf8.ValidString(e.Path + e.Canonical + e.Host + e.Name + e.String()) {
		return "none in the policy: a policy file is UTF-8, and the name is not"
	}
	then := "it is allowed"
	if becomes == Ask {
		then = "a person is asked"
	}
	return strings.Join(parts, "; and ") + "; then " + then
}

// whyNone tells why no rule can alter the verdict, and what can be done instead.
func (p *Policy) whyNone(e Effect) string {
	switch {
	case e.Kind == Opaque, e.Kind == Exec && (len(e.Argv) == 0 || e.Argv[0].Dynamic):
		return "what cannot be analysed is never allowed; write the command so that its programs and files stand in it literally"
	case e.Kind == Exec && isInlineCode(e.Argv):
		return "no rule names code that stands in the command; put the code into a file and allow that"
	case e.Kind == Exec:
		return "no narrow rule names this command; write it with fewer and literal words"
	case e.Kind == Env:
		return "a variable whose name is not known beforehand is never allowed; name it"
	}
	return "no narrow rule names it"
}

// joined makes one edit of those that belong together.
func joined(edits []edit) (out []edit) {
	for _, ed := range edits {
		i := slices.IndexFunc(out, ed.continues)
		if i < 0 {
			out = append(out, ed)
			continue
		}
		out[i].value, out[i].texts = ed.value, append(slices.Clip(out[i].texts), ed.texts...)
	}
	return out
}

// continues reports whether both edits stand in one place of a file: exceptions in
// one rule, steps of one default, built-in rules that are switched off.
func (ed edit) continues(before edit) bool {
	switch {
	case ed.key != before.key || ed.file != before.file:
		return false
	case ed.key == "except" || ed.key == "permit_flags":
		return ed.at.ID == before.at.ID && ed.at.source == before.at.source
	}
	return ed.value != Deny || ed.key == "builtin.disable"
}

// editText is an edit as it is made. deciding is the rule that decided, which
// needs no further name.
func (p *Policy) editText(ed edit, deciding *rule) string {
	in := ""
	if ed.file != "" && ed.file != p.files[0].Name {
		in = " in " + ed.file
		if a := p.options.Administrator; a != nil && ed.file == a.Name {
			in += ", which only the administrator can change"
		}
	}
	section, key, _ := strings.Cut(ed.key, ".")
	switch ed.key {
	case "commands", "paths", "net":
		return fmt.Sprintf("under %s: %s", ed.key, ruleText(ed.rule))
	case "except":
		which := "this rule"
		if deciding == nil || ed.at.ID != deciding.ID || ed.at.source != deciding.source {
			which = fmt.Sprintf("rule %q (%s)", ed.at.ID, ed.at.source)
		}
		return fmt.Sprintf("an exception in %s: except: %s%s", which, listText(ed.texts), in)
	case "permit_flags":
		return fmt.Sprintf("permit_flags: %s in rule %q (%s)", listText(ed.texts), ed.at.ID, ed.at.source)
	case "builtin.disable":
		return fmt.Sprintf("builtin: {disable: %s}, which takes the whole of %s away", listText(ed.texts), map[bool]string{true: "a built-in rule", false: "these built-in rules"}[len(ed.texts) == 1])
	case "env.allow":
		return fmt.Sprintf("env: {allow: %s}", listText(ed.texts))
	case "mode":
		return "mode: interactive" + in
	}
	return fmt.Sprintf("%s: {%s: %v}%s", section, key, ed.value, in)
}

// ruleText writes a rule as it stands in a file.
func ruleText(r Rule) string {
	keys := []string{"id: " + r.ID, "decision: " + r.Action.String()}
	list := func(key string, texts []string) {
		if len(texts) > 0 {
			keys = append(keys, key+": "+listText(texts))
		}
	}
	list("run", r.Run)
	list("permit_flags", r.PermitFlags)
	list("cwd", r.Dirs)
	if len(r.Ops) > 0 {
		keys = append(keys, "ops: ["+r.Ops[0].String()+"]")
	}
	list("match", r.Paths)
	list("hosts", r.Hosts)
	if len(r.Ports) > 0 {
		keys = append(keys, fmt.Sprintf("ports: [%d]", r.Ports[0]))
	}
	list("schemes", r.Schemes)
	return "{" + strings.Join(keys, ", ") + "}"
}

// listText writes texts as a list that YAML and people read alike.
func listText(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// titled gives a proposed rule an id that no rule of the policy has.
func (p *Policy) titled(r Rule, e Effect) Rule {
	words := "allow " + e.Kind.String() + " " + baseName(e.Canonical) + " " + e.Host
	if e.Kind == Exec {
		words = "allow " + baseName(e.Argv[0].Text)
		if len(e.Argv) > 1 {
			words += " " + e.Argv[1].Text
		}
	}
	parts := strings.FieldsFunc(strings.ToLower(words), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	id := strings.Join(parts[:min(len(parts), 4)], "-")
	r.ID = id[:min(len(id), 40)]
	for n := 2; p.ids[r.ID]; n++ {
		r.ID = fmt.Sprintf("%s-%d", id, n)
	}
	return r
}

// allowingHost returns the narrowest rule that allows to contact a host.
func allowingHost(e Effect) Rule {
	r := Rule{Action: Allow, Hosts: []string{e.Host}}
	if e.Port != 0 {
		r.Ports = []int{e.Port}
	}
	if e.Scheme != "" {
		r.Schemes = []string{e.Scheme}
	}
	return r
}

// allowingCommand returns the narrowest rule that allows a command. What a pattern
// cannot name is a wildcard in it, unless it is code.
func allowingCommand(e Effect) (Rule, bool) {
	text, ok := patternOf(e.Argv)
	if !ok || strings.Contains(text, "*") && isInlineCode(e.Argv) {
		return Rule{}, false
	}
	r := Rule{Action: Allow, Run: []string{text}}
	pat, err := compilePattern(text)
	if err != nil {
		return Rule{}, false
	}
	program := e.Argv[0].Text
	free, ok := pat.strict(e.Argv)
	unsafe := unsafeIn(e.Argv)
	for _, i := range free {
		if i > 0 && unsafe(i) {
			r.PermitFlags = append(r.PermitFlags, e.Argv[i].Text)
		}
	}
	if strings.Contains(program, "/") && !strings.HasPrefix(program, "/") {
		for _, dir := range e.Dirs {
			r.Dirs = append(r.Dirs, escapeMeta(dir))
		}
	}
	return r, ok
}

// patternOf returns the narrowest pattern that matches a command word for word.
// ok is false where there is none that people could read.
func patternOf(argv []Word) (text string, ok bool) {
	if len(argv) == 0 || argv[0].Dynamic || len(argv) > maxPattern/2 {
		return "", false
	}
	var tokens []string
	for _, w := range argv {
		token := tokenOf(w)
		if token == "**" && len(tokens) > 0 && tokens[len(tokens)-1] == "**" {
			continue
		}
		tokens = append(tokens, token)
	}
	text = strings.Join(tokens, " ")
	return text, len(text) <= maxPattern && !strings.Contains(tokens[0], "*")
}

// tokenOf is the narrowest token that matches a word.
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

// quoted writes a word as shlex reads it.
func quoted(word string) string {
	switch {
	case word != "" && !strings.ContainsAny(word, " \t'\"\\#;|&<>()$`"):
		return word
	case !strings.Contains(word, "'"):
		return "'" + word + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}
