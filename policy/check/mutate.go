package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
)

// mutations returns other spellings of a command that do the same.
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

// longFlags are programs whose flags of several letters begin with one dash.
const longFlags = " go gofmt find java javac terraform tofu openssl gcc cc g++ clang make "

// bundles returns other spellings of one word: the letters of bundled flags apart and the
// other way round, and the value of a long flag in the next word.
func bundles(w string) (list [][]string) {
	name, value, valued := strings.Cut(w, "=")
	switch {
	case strings.HasPrefix(w, "--") && valued:
		return [][]string{{name, value}}
	case len(w) < 3 || w[0] != '-' || w[1] == '-' || len(w) > 5 || valued:
		return nil
	}
	var apart, turned []string
	for _, letter := range w[1:] {
		apart, turned = append(apart, "-"+string(letter)), append([]string{string(letter)}, turned...)
	}
	return [][]string{apart, {"-" + strings.Join(turned, "")}}
}

// mutate tries an asking or denying rule on other spellings of a command that it names,
// and warns of those that pass.
func (l *linter) mutate(r policy.Rule, pattern, sample string) {
	words := strings.Fields(sample)
	if r.Action == policy.Allow || len(r.Dirs) > 0 || len(r.Except) > 0 || len(words) == 0 {
		return
	}
	open := policy.Defaults{Bash: policy.Allow, Read: policy.Allow, Write: policy.Allow, Net: policy.Allow, Unanalysable: policy.Ask, UnknownRead: policy.Allow, UnknownWrite: policy.Allow, UnknownEnv: policy.Allow}
	r.Match, r.NotMatch = nil, nil
	alone, err := policy.Compile(l.Policy.Options(), policy.File{Defaults: open, Commands: []policy.Rule{r}})
	switch {
	case err != nil:
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

// stops reports whether a policy does not allow a script.
func (l *linter) stops(p *policy.Policy, script string) bool {
	arguments, err := json.Marshal(map[string]string{"command": script})
	if err != nil {
		return true
	}
	effects, err := l.Effects("bash", arguments)
	return err != nil || p.Decide(effects).Action != policy.Allow
}
