package toold_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
	"github.com/toold/toold/tools"
)

// judgeOf is the judge of a policy for calls in a workspace.
func judgeOf(t *testing.T, registry *tools.Registry, ws string, f policy.File) *check.Judge {
	t.Helper()
	p, err := policy.Compile(policy.Options{Workspace: ws, Home: "/home/u", Tmp: "/tmp"}, f)
	if err != nil {
		t.Fatal(err)
	}
	return &check.Judge{Policy: p, Effects: func(name string, arguments json.RawMessage) ([]policy.Effect, error) {
		tool, _, _ := registry.Lookup(name)
		inv, err := tool.Build(arguments)
		if err != nil {
			return nil, err
		}
		return inv.Effects(), nil
	}}
}

// ruleCase is a block of policy/testdata/rules.txt.
type ruleCase struct {
	class             string
	rule              policy.Rule
	means, nots, only []string
}

// readRules reads policy/testdata/rules.txt, which says how it is written.
func readRules(t *testing.T) (list []*ruleCase) {
	t.Helper()
	text, err := os.ReadFile("policy/testdata/rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	class := ""
	for line := range strings.Lines(string(text)) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == "rule" {
			word, patterns, _ := strings.Cut(rest, " ")
			word, op, isPath := strings.Cut(word, "-")
			action, err := policy.ParseAction(word)
			if err != nil {
				t.Fatal(err)
			}
			rule := policy.Rule{ID: "mine", Action: action, Run: strings.Split(patterns, " | ")}
			if isPath {
				rule = policy.Rule{ID: "mine", Action: action, Ops: []policy.Kind{map[string]policy.Kind{"read": policy.Read, "write": policy.Write}[op]}, Paths: strings.Split(patterns, " | ")}
			}
			list = append(list, &ruleCase{class: class, rule: rule})
			continue
		}
		switch key {
		case "", "#":
		case "==":
			class = rest
		case "require":
			list[len(list)-1].rule.RequireFlags = strings.Split(rest, " | ")
		case "forbid":
			list[len(list)-1].rule.ForbidFlags = strings.Split(rest, " | ")
		case "+":
			list[len(list)-1].means = append(list[len(list)-1].means, rest)
		case "!":
			list[len(list)-1].only = append(list[len(list)-1].only, rest)
		case "-":
			list[len(list)-1].nots = append(list[len(list)-1].nots, rest)
		default:
			t.Fatalf("cannot read %q", line)
		}
	}
	return list
}

func rulesIf(is bool, r policy.Rule) []policy.Rule {
	if !is {
		return nil
	}
	return []policy.Rule{r}
}

// Rules of the kind that people write, with what used to pass them: spellings of each are
// tried, and check has nothing to say of the rules.
func TestRulesMeanWhatTheySayInEverySpelling(t *testing.T) {
	t.Parallel()
	ws := docsWorkspace(t)
	registry := docsTools(t, ws)
	for _, c := range readRules(t) {
		allows := c.rule.Action == policy.Allow
		start := policy.Allow
		if allows {
			start = policy.Ask
		}
		j := judgeOf(t, registry, ws, policy.File{Defaults: policy.Defaults{Bash: start, Read: policy.Allow, Write: policy.Allow, Net: policy.Allow, Unanalysable: policy.Ask, UnknownRead: policy.Allow, UnknownWrite: policy.Allow, UnknownEnv: policy.Allow}, Commands: rulesIf(c.rule.Paths == nil, c.rule), Paths: rulesIf(c.rule.Paths != nil, c.rule)})
		for _, script := range c.means {
			if got := judged(t, registry, j.Policy, script).Action; (got == policy.Allow) != allows {
				t.Errorf("%s: %.30q: %s: %v", c.class, c.rule.Run, script, got)
			}
		}
		for _, script := range c.only {
			if got := judged(t, registry, j.Policy, script).Action; got != c.rule.Action {
				t.Errorf("%s: %.30q: %s: %v", c.class, c.rule.Run, script, got)
			}
		}
		for _, script := range c.nots {
			if got := judged(t, registry, j.Policy, script).Action; (got == policy.Allow) == allows {
				t.Errorf("%s: %.30q: not meant: %s: %v", c.class, c.rule.Run, script, got)
			}
		}
		for _, f := range j.Lint() {
			if !strings.Contains(f.Problem, "allows more than it names") {
				t.Errorf("%q: %v", c.rule.Run, f)
			}
		}
	}
}

// What a wildcard covers of a program of which nothing is known is named.
func TestWhatSlipsIntoARuleIsNamed(t *testing.T) {
	t.Parallel()
	ws := docsWorkspace(t)
	registry := docsTools(t, ws)
	for pattern, want := range map[string]string{
		"mydb **":        `its flags are not known: a rule about mydb allows all that they can do`,
		"mydb dump **":   `its flags are not known: a rule about mydb`,
		"mydb -v dump *": "", "mydb dump": "", "./own.sh **": "", "go test **": "", "tflint **": "", "ffmpeg **": "", "rspec **": "", "hg log **": "",
	} {
		j := judgeOf(t, registry, ws, policy.File{Defaults: policy.Defaults{Bash: policy.Ask}, Commands: []policy.Rule{{ID: "mine", Action: policy.Allow, Run: []string{pattern}}}})
		var text string
		for _, f := range j.Lint() {
			text += f.Problem
		}
		if !strings.Contains(text, want) || (text == "") != (want == "") {
			t.Errorf("%s: %q", pattern, text)
		}
	}
}
