package check_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
)

// place is a machine that does not exist.
func place() policy.Options {
	return policy.Options{Workspace: "/w", Home: "/h", Tmp: "/tmp"}
}

// asking are the defaults of a file that says nothing.
func asking() policy.Defaults {
	const ask = policy.Ask
	return policy.Defaults{Bash: ask, Read: ask, Write: ask, Net: ask, Unanalysable: ask, UnknownRead: ask, UnknownWrite: ask, UnknownEnv: ask}
}

func judge(t testing.TB, o policy.Options, user policy.File, further ...policy.File) *check.Judge {
	t.Helper()
	p := must.Get(policy.Compile(o, user, further...))(t)
	return &check.Judge{Policy: p, Effects: func(_ string, arguments json.RawMessage) ([]policy.Effect, error) {
		var a struct{ Command string }
		if json.Unmarshal(arguments, &a) != nil || a.Command == "" {
			return nil, errors.New("no command")
		}
		return runs(a.Command), nil
	}}
}

// runs are the effects of simple commands.
func runs(commands ...string) (list []policy.Effect) {
	for _, c := range commands {
		var argv []policy.Word
		for _, w := range strings.Fields(c) {
			argv = append(argv, policy.Word{Text: w})
		}
		list = append(list, policy.Effect{Kind: policy.Exec, Argv: argv, Dirs: []string{"/w"}, Source: c})
	}
	return list
}

func TestWhatIsMissingIsReadable(t *testing.T) {
	t.Parallel()
	o := place()
	o.Administrator = &policy.File{Name: "/etc/toold/policy.yaml", Defaults: asking(), Commands: []policy.Rule{
		{ID: "no-deploy", Action: policy.Deny, Line: 3, Run: []string{"deploy **"}},
	}}
	j := judge(t, o, policy.File{Name: "p.yaml", Defaults: asking(), Commands: []policy.Rule{
		{ID: "push", Action: policy.Deny, Run: []string{"git push **"}, Line: 7},
		{ID: "allow-go-test", Action: policy.Allow, Run: []string{"go test"}},
		{ID: "pull", Action: policy.Ask, Run: []string{"git {push,pull} **"}, Line: 9},
	}, Net: []policy.Rule{{ID: "meta", Action: policy.Deny, Hosts: []string{"*.test"}}}}, policy.File{Name: ".toold/policy.yaml", Headless: true, Defaults: asking()})
	written := func(path string) policy.Effect { return policy.Effect{Kind: policy.Write, Path: path, Canonical: path} }
	for _, c := range []struct {
		effects []policy.Effect
		want    string
	}{
		{runs("go test"), ``},
		{runs("go test -o x"), `under commands: {id: allow-go-test-2, decision: allow, run: ["go test -o x"]}; then it is allowed`},
		{runs("a x", "b x"), `under commands: {id: allow-a-x, decision: allow, run: ["a x"]}; and under commands: {id: allow-b-x, decision: allow, run: ["b x"]}; then it is allowed`},
		{runs("a x 1", "a x 2", "a x 1"), `under commands: {id: allow-a-x, decision: allow, run: ["a x 1"]}; and under commands: {id: allow-a-x-2, decision: allow, run: ["a x 2"]}; then it is allowed`},
		{runs("git push"), `an exception in rule "push": except: ["git push"]; and an exception in rule "pull": except: ["git push"]; and under commands: {id: allow-git-push, decision: allow, run: ["git push"]}; then it is allowed`},
		{runs("deploy"), `an exception in rule "no-deploy": except: ["deploy"] in /etc/toold/policy.yaml; and under commands: {id: allow-deploy, decision: allow, run: ["deploy"]}`},
		{append(runs("x"), written("/w/.git/config")), `under commands: {id: allow-x, decision: allow, run: ["x"]}; and builtin: {disable: ["builtin:git-config"]}, which takes the whole of a built-in rule away; and under paths: {id: allow-write-config, decision: allow, ops: [write], match: ["/w/.git/config"]}; then it is allowed`},
		{[]policy.Effect{{Kind: policy.Env, Name: "X"}, {Kind: policy.Net, Host: "a.test", Port: 443}}, `env: {allow: ["X"]}; and an exception in rule "meta": except: ["a.test"]; and under net: {id: allow-net-a-test, decision: allow, hosts: ["a.test"], ports: [443]}; then it is allowed`},
		{append(runs("x"), policy.Effect{Kind: policy.Opaque, Why: "y"}), `none in the policy: what cannot be analysed is never allowed; write the command so that its programs and files are literal words`},
	} {
		m := j.Missing(c.effects)
		if got := j.ExplainEffects(c.effects).Change; got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.effects, got, c.want)
		}
		if allowed := j.Decide(c.effects).Action == policy.Allow; allowed != (len(m.Obstacles) == 0) {
			t.Errorf("%v: allowed %v, obstacles %+v", c.effects, allowed, m.Obstacles)
		}
	}
}

// recorded is a history in which people decided on commands: "+" let it run, "!" let it
// run and it failed, "-" refused.
func recorded(lines ...string) *check.History {
	h := &check.History{}
	for i, line := range lines {
		command := line[2:]
		h.Add(check.Event{
			ID: fmt.Sprint("call-", i), Hash: command, Text: command, At: time.Unix(int64(i), 0),
			ByPerson: line[0] != ' ', Allowed: line[0] == '+' || line[0] == '!', Worked: line[0] == '+',
		}, func() ([]policy.Effect, error) { return runs(strings.Split(command, "; ")...), nil })
	}
	return h
}

func proposed(list []*check.Proposal) (texts []string) {
	for _, p := range list {
		texts = append(texts, fmt.Sprintf("%d %s", p.Approved, strings.Join(p.Change.Rule.Run, " ")))
	}
	return texts
}

func TestWhatWasApprovedMostIsProposedFirst(t *testing.T) {
	t.Parallel()
	lines := []string{"+ tool lint", "! tool breaks", "+ tool was-fine", "- tool was-fine", "- tool never", "  tool by itself"}
	for range 20 {
		lines = append(lines, "+ make build", "+ python3 t.py")
	}
	lines = append(lines, "+ make build", "+ python3 other.py", "! python3 t.py 2")
	j := judge(t, place(), policy.File{Name: "p.yaml", Defaults: asking()})
	list := j.Suggest(recorded(lines...))
	if diff := cmp.Diff([]string{"21 make build", "20 python3 t.py", "1 python3 other.py", "1 tool lint"}, proposed(list)); diff != "" {
		t.Errorf("proposals (-want +got):\n%s", diff)
	}
	for _, p := range list {
		if code := !strings.HasPrefix(p.Change.Rule.Run[0], "tool"); p.RunsCode != code || p.Last.IsZero() {
			t.Errorf("%+v", p)
		}
	}
}

func TestAProposalIsNoWiderThanWhatWasApproved(t *testing.T) {
	t.Parallel()
	j := judge(t, place(), policy.File{Name: "p.yaml", Defaults: asking(), Commands: []policy.Rule{{ID: "push", Action: policy.Ask, Run: []string{"git push **"}}}})
	h := recorded(
		"+ tool build a -q", "+ tool build b -q",
		"+ tool build c --force", // another flag
		"+ tool clean a -q",      // another subcommand
		"+ tool build a",         // fewer words
		"  tool build d -q",
		"+ git push", // a rule asks on purpose
		"+ make a 1", "+ make a 2",
	)
	list := j.Suggest(h)
	want := []string{"2 tool build * -q", "1 make a 2", "1 make a 1", "1 tool build a", "1 tool clean a -q", "1 tool build c --force"}
	if diff := cmp.Diff(want, proposed(list)); diff != "" {
		t.Errorf("proposals (-want +got):\n%s", diff)
	}
	if got := list[0]; len(got.Saves) != 2 || len(got.Also) != 1 || got.Also[0].Text != "tool build d -q" {
		t.Errorf("got %+v", got)
	}
}

func TestNothingIsProposedForAPartOfACall(t *testing.T) {
	t.Parallel()
	j := judge(t, place(), policy.File{Name: "p.yaml", Defaults: asking()})
	h := &check.History{}
	for i, effects := range [][]policy.Effect{
		append(runs("tool x"), policy.Effect{Kind: policy.Opaque, Why: "unknown"}),
		append(runs("tool y"), policy.Effect{Kind: policy.Env, Name: "LD_PRELOAD"}),
		append(runs("tool z"), policy.Effect{Kind: policy.Write, Path: "/w/.git/config", Canonical: "/w/.git/config"}),
		{{Kind: policy.Exec, Argv: []policy.Word{{Text: "tool"}, {Text: "a", Dynamic: true}}}},
	} {
		h.Add(check.Event{Hash: fmt.Sprint(i), ByPerson: true, Allowed: true, Worked: true}, func() ([]policy.Effect, error) { return effects, nil })
	}
	if list := j.Suggest(h); len(list) > 0 {
		t.Errorf("a part of what cannot be allowed is proposed: %v", proposed(list))
	}
}

func TestAnotherPolicyIsComparedOnTheHistory(t *testing.T) {
	t.Parallel()
	j := judge(t, place(), policy.File{Name: "p.yaml", Defaults: asking()})
	next := must.Get(j.With(policy.Change{File: "p.yaml", Section: "commands", Rule: policy.Rule{ID: "new", Action: policy.Allow, Run: []string{"tool *"}}}))(t)
	got := j.Compare(recorded("+ tool a", "  tool a", "  other a"), next)
	if len(got) != 1 || got[0].Text != "tool a" || got[0].Before != policy.Ask || got[0].After != policy.Allow || got[0].Rule != "new" {
		t.Errorf("%+v", got)
	}
}

func TestACaseSaysHowItFailed(t *testing.T) {
	t.Parallel()
	j := judge(t, place(), policy.File{Name: "p.yaml", Defaults: asking()})
	for line, want := range map[string]string{
		`{"command": "x", "expect": "ask"}`:                                      "",
		`{"command": "x", "expect": "allow"}`:                                    "got ask, want allow",
		`{"tool": "bash", "arguments": {"command": "x"}, "must_not": ["ask"]}`:   "got ask, want not ask",
		`{"tool": "bash", "arguments": {}, "expect": "deny"}`:                    "",
		`{"tool": "bash", "arguments": {"commando": "x"}, "must_not": ["deny"]}`: "refused before the policy sees it: no command",
	} {
		c := must.Get(check.ReadCase([]byte(line)))(t)
		if got := c.Failure(j); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", line, got)
		}
	}
	for _, line := range []string{`{"command": "x"}`, `{"command": "x", "expect": "maybe"}`, `{"command": "x", "must_nott": ["deny"]}`, `{"command": "x", "expect": "ask"} {}`, `{"command": "x", "tool": "bash", "expect": "ask"}`} {
		if _, err := check.ReadCase([]byte(line)); err == nil {
			t.Errorf("%s is read", line)
		}
	}
}

func FuzzReadCase(f *testing.F) {
	f.Add([]byte(`{"command": "ls", "expect": "allow"}`))
	f.Add([]byte(`{"tool": "bash", "arguments": {"command": "x"}, "must_not": ["allow"], "cwd": "/"}`))
	f.Add([]byte(`{"tool": "bash", "arguments": null, "expect": "ask", "cwd": "/"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := check.ReadCase(line)
		if err == nil && (c.Tool == "" || len(c.Arguments) == 0 || c.Expect == "" && len(c.MustNot) == 0) {
			t.Errorf("%q is read as a case without meaning: %+v", line, c)
		}
	})
}
