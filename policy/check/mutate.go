package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// mutations returns other spellings of a command that have the same effects.
func mutations(words []string) (list []string) {
	add := func(words ...string) {
		if text := strings.TrimSpace(strings.Join(words, " ")); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	text := strings.Join(words, " ")
	for _, wrapper := range []string{"env ", "env A=1 ", "command ", "exec ", "timeout 5 ", "nice -n 5 ", "nohup ", "sudo ", "xargs "} {
		add(wrapper + text)
	}
	if !strings.Contains(words[0], "/") {
		add("/usr/bin/" + text)
	}
	add("sh -c '" + text + "'")
	add("true && " + text)
	add(`"` + words[0] + `" ` + strings.Join(words[1:], " "))
	var flags, operands []string
	for _, w := range words[1:] {
		if len(w) > 1 && w[0] == '-' {
			flags = append(flags, w)
		} else {
			operands = append(operands, w)
		}
	}
	for _, other := range programs.Spellings(words) {
		add(other...)
	}
	if len(flags) == 0 {
		return list
	}
	add(slices.Concat(words[:1], operands, flags)...)
	slices.Reverse(flags)
	add(slices.Concat(words[:1], operands, flags)...)
	for i, w := range words {
		if strings.Contains(longFlags, " "+words[0]+" ") {
			break
		}
		for _, other := range bundles(w) {
			add(slices.Concat(words[:i], other, words[i+1:])...)
		}
	}
	return list
}

const longFlags = " go gofmt find java javac terraform tofu openssl gcc cc g++ clang make "

// bundles returns bundled flags split or reversed, or a long flag split from its value.
func bundles(w string) (list [][]string) {
	name, value, valued := strings.Cut(w, "=")
	switch {
	case strings.HasPrefix(w, "--") && valued:
		return [][]string{{name, value}}
	case valued, len(w) < 3, len(w) > 5, w[0] != '-', w[1] == '-':
		return nil
	}
	var apart, turned []string
	for _, letter := range w[1:] {
		apart, turned = append(apart, "-"+string(letter)), append([]string{string(letter)}, turned...)
	}
	return [][]string{apart, {"-" + strings.Join(turned, "")}}
}

// intruders returns commands that a final wildcard matches by mistake: with another value of a flag, or a refspec.
func intruders(pattern string, words []string) (list []string) {
	add := func(words ...string) { list = append(list, strings.Join(words, " ")) }
	c := programs.Parse(programs.Words(words))
	last := len(words) - 1
	pushes := c.Base == "git" && last > 1 && words[1] == "push"
	if pushes && strings.HasSuffix(pattern, "*") {
		add(slices.Concat(words[:last], []string{words[last] + ":main"})...)
	}
	if !strings.HasSuffix(pattern, " **") {
		return list
	}
	for _, f := range c.Flags {
		if f.HasValue && f.Words(programs.Words(words)) > 0 && len(c.Runs) == 0 {
			add(slices.Concat(words, []string{f.Name, f.Value.Text + "-other"})...)
		}
	}
	return list
}

func (l *linter) slips(r policy.Rule, pattern string, words []string) {
	r.PermitFlags = nil // the author meant them
	alone := l.alone(r, policy.Ask)
	if alone == nil {
		return
	}
	for _, script := range intruders(pattern, words) {
		if !l.stops(alone, script) {
			l.warn(r, pattern, fmt.Sprintf("%q", script), "{}: the rule allows that too, since ** stands for any flag; take out what you do not mean with forbid_flags, or write the words in full")
		}
	}
}

func (l *linter) alone(r policy.Rule, commands policy.Action) *policy.Policy {
	open := policy.Defaults{Bash: commands, Read: policy.Allow, Write: policy.Allow, Net: policy.Allow, Unanalysable: policy.Ask, UnknownRead: policy.Allow, UnknownWrite: policy.Allow, UnknownEnv: policy.Allow}
	r.Match, r.NotMatch = nil, nil
	p, err := policy.Compile(l.Policy.Options(), policy.File{Defaults: open, Commands: []policy.Rule{r}})
	if err != nil {
		return nil
	}
	return p
}

// mutate warns of spellings of a sample that an ask or deny rule misses, and of intruders of an allow rule.
func (l *linter) mutate(r policy.Rule, pattern, sample string) {
	words := strings.Fields(sample)
	if len(r.Dirs) > 0 || len(r.Except) > 0 || len(words) == 0 {
		return
	}
	if r.Action == policy.Allow {
		l.slips(r, pattern, words)
		return
	}
	alone := l.alone(r, policy.Allow)
	switch {
	case alone == nil:
		return
	case !l.stops(alone, sample):
		l.warn(r, pattern, fmt.Sprintf("%q", sample), "{} passes the rule, though its pattern names it: the rule stops no command that is written so")
		return
	}
	for _, spelling := range mutations(words) {
		if !l.stops(alone, spelling) {
			l.warn(r, pattern, fmt.Sprintf("%q", spelling), "{} does the same as its pattern and passes the rule; list that spelling too")
		}
	}
}

func (l *linter) stops(p *policy.Policy, script string) bool {
	effects, err := l.script(script)
	return err != nil || p.Decide(effects).Action != policy.Allow
}

const maxSamples = 32

// samples returns commands that a pattern matches, or nil if it contains quotes.
func samples(pattern string) []string {
	if strings.ContainsAny(pattern, `'"\`) {
		return nil
	}
	list := []string{""}
	for _, word := range strings.Fields(pattern) {
		var next []string
		for _, before := range list {
			for _, choice := range alternatives(word) {
				choice = strings.ReplaceAll(strings.ReplaceAll(choice, "**", ""), "*", "sample")
				next = append(next, strings.TrimSpace(before+" "+choice))
			}
		}
		if len(next) == 0 {
			return nil
		}
		list = next[:min(len(next), maxSamples)]
	}
	if list[0] == "" {
		return nil // the pattern matches any program
	}
	return list
}

func alternatives(text string) []string {
	list, _ := policy.ExpandBraces(text)
	return list[:min(len(list), maxSamples)]
}
