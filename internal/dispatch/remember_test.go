package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// willing answers every question with a yes for the conversation, until the test ends, and keeps
// the questions.
func willing(t *testing.T, b *bench) *[]message.ApprovalRequest {
	var asked []message.ApprovalRequest
	t.Cleanup(b.approvals.Join(onAsked(func(r approval.Request[message.ApprovalRequest]) {
		asked = append(asked, r.Show)
		if err := b.approvals.Resolve(r.ID, approval.Verdict{Approve: true, By: "ada", Remember: "conversation"}); err != nil {
			t.Error(err)
		}
	})))
	return &asked
}

func TestAnAnswerForAConversationIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Ask, &probe{})
	defer b.stop(t)
	asked := willing(t, b)
	first := b.call(t, "call_1", `{}`).Return
	second := b.call(t, "call_2", `{"n": 2}`).Return // other arguments, the same effects
	if len(*asked) != 1 {
		t.Fatalf("asked %d times", len(*asked))
	}
	if d := first.Decision; d.By != "person" || d.Answer != "" {
		t.Errorf("the first: %+v", d)
	}
	if d := second.Decision; d.By != "remembered" || d.Person != "ada" || d.Answer != (*asked)[0].ID || !strings.Contains(d.Reason, d.Answer) {
		t.Errorf("the second: %+v", d)
	}
	b.SetPolicy(readsAre(t, policy.Deny))
	if third := b.call(t, "call_3", `{}`).Return; third.Status != "error" || third.Decision.Action != "deny" {
		t.Errorf("an earlier answer outweighs a rule that denies: %+v", third.Decision)
	}
}

func TestAPolicyMayMakeEveryYesCountForItsConversation(t *testing.T) {
	t.Parallel()
	for remember, most := range map[string]int{"": 1, "once": 2} {
		b := newBench(t, policy.Ask, &probe{})
		b.SetPolicy(compiled(t, policy.File{Name: "user", OncePer: "conversation", Defaults: policy.Defaults{Read: policy.Ask}}))
		asked := 0
		t.Cleanup(b.approvals.Join(onAsked(func(r approval.Request[message.ApprovalRequest]) {
			asked++
			b.resolve(t, r.ID, approval.Verdict{Approve: true, By: "ada", Remember: remember})
		})))
		for _, id := range []string{"call_1", "call_2"} {
			if ret := b.call(t, id, `{}`).Return; ret.Status != "success" {
				t.Errorf("%q: %s got %+v", remember, id, ret)
			}
		}
		if b.stop(t); asked != most {
			t.Errorf("%q: asked %d times, want %d", remember, asked, most)
		}
	}
}

// A yes to a change of a file is about its content, which no effect names.
func TestAnAnswerForAConversationIsAboutOneContent(t *testing.T) {
	t.Parallel()
	opened := 0
	tool := &probe{run: func(_ context.Context, io tools.IO) tools.Result {
		opened = len(io.Opened) + len(io.Approved)
		return tools.Result{}
	}}
	b := newBench(t, policy.Ask, tool)
	defer b.stop(t)
	rules := compiled(t, policy.File{
		Name: "writes", Defaults: policy.Defaults{Write: policy.Ask},
	})
	b.SetPolicy(rules)
	tool.does = policy.Effect{Kind: policy.Write, Path: "/nowhere/x", Canonical: "/nowhere/x"}
	asked := willing(t, b)
	for i, step := range []struct {
		arguments string
		asked     int
	}{{`{"n": 1}`, 1}, {`{"n": 1}`, 1}, {`{"n": 2}`, 2}, {`{"n": 1}`, 2}, {`{"n": 2}`, 2}, {`{}`, 3}} {
		opened = 0
		b.call(t, fmt.Sprintf("call_%d", i), step.arguments)
		if len(*asked) != step.asked || opened != 2 {
			t.Errorf("step %d: asked %d times; %d opened", i, len(*asked), opened)
		}
	}
}

// A yes to a command is about its input too, which no effect names, and about every byte of a name.
func TestAnAnswerForAConversationIsAboutWhatWasShown(t *testing.T) {
	t.Parallel()
	ssh := policy.Effect{Kind: policy.Exec, Argv: []policy.Word{{Text: "ssh"}, {Text: "h"}}}
	for name, tc := range map[string]struct {
		one, other           policy.Effect
		arguments, otherwise string
		asked                int
	}{
		"a command in another script": {ssh, ssh, `{"command": "ssh h"}`, `{"command": "ls && ssh h"}`, 1},
		"other input":                 {ssh, ssh, `{"command": "ssh h <<< date"}`, `{"command": "ssh h <<< reboot"}`, 2},
		"input where was none":        {ssh, ssh, `{"command": "ssh h"}`, `{"command": "echo reboot \u007c ssh h"}`, 2},
		"another environment":         {ssh, ssh, `{"command": "ssh h"}`, `{"command": "SSH_AUTH_SOCK=x ssh h"}`, 2},
		"another name that JSON writes alike": {
			policy.Effect{Kind: policy.Read, Path: "/nowhere/x", Canonical: "/nowhere/\xff"},
			policy.Effect{Kind: policy.Read, Path: "/nowhere/x", Canonical: "/nowhere/\xfe"},
			`{}`, `{}`, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, policy.Ask, &probe{})
			defer b.stop(t)
			b.SetPolicy(compiled(t, policy.File{Name: "user", Defaults: policy.Defaults{Bash: policy.Ask, Read: policy.Ask}}))
			asked := willing(t, b)
			b.tool.does = tc.one
			b.call(t, "call_1", tc.arguments)
			b.tool.does = tc.other
			b.call(t, "call_2", tc.otherwise)
			if len(*asked) != tc.asked {
				t.Errorf("asked %d times, want %d", len(*asked), tc.asked)
			}
		})
	}
}

// A script may set a variable without the characters that usually do, or run a file that does.
func TestAnAnswerForAConversationIsAboutTheVariablesOfACommand(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Ask, &probe{})
	defer b.stop(t)
	b.SetPolicy(compiled(t, policy.File{
		Name: "user", Defaults: policy.Defaults{Bash: policy.Ask, Unanalysable: policy.Ask, UnknownEnv: policy.Allow},
	}))
	asked := willing(t, b)
	b.tool.does = policy.Effect{Kind: policy.Exec, Argv: []policy.Word{{Text: "git"}, {Text: "push"}}}
	variable := []policy.Effect{{Kind: policy.Env, Name: "FOO"}}
	for i, step := range []struct {
		command string
		before  []policy.Effect
		asked   int
	}{
		{"git push", nil, 1},
		{"cd . && git push", nil, 1},
		{"printf -v FOO x; export FOO; git push", variable, 2},
		{"printf -v FOO x; export FOO; git push", variable, 2},
		{"printf -v FOO y; export FOO; git push", variable, 3},
	} {
		b.tool.before = step.before
		b.call(t, fmt.Sprintf("call_%d", i), fmt.Sprintf(`{"command": %q}`, step.command))
		if len(*asked) != step.asked {
			t.Errorf("step %d: asked %d times, want %d", i, len(*asked), step.asked)
		}
	}
}

// fedProbe is a probe that gives its program all of its arguments.
type fedProbe struct {
	*probe
	arguments string
}

func (f fedProbe) Build(args json.RawMessage) (tools.Invocation, error) {
	return fedProbe{f.probe, string(args)}, nil
}

func (f fedProbe) Fed() string { return f.arguments }

func TestAnAnswerForAConversationIsAboutWhatAProgramIsGiven(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Ask, &probe{})
	defer b.stop(t)
	b.workspace.opt.Registry = must.Get(tools.NewRegistry(fedProbe{probe: b.tool}))(t)
	b.tool.does = policy.Effect{Kind: policy.Exec, Argv: []policy.Word{{Text: "tool"}, {Text: "query"}}}
	b.SetPolicy(compiled(t, policy.File{Name: "user", Defaults: policy.Defaults{Bash: policy.Ask}}))
	asked := willing(t, b)
	for i, step := range []struct {
		arguments         string
		input, background bool
		asked             int
	}{
		{`{"sql": "select 1"}`, false, false, 1},
		{`{"sql": "select 1"}`, false, false, 1},
		{`{"sql": "drop table users"}`, false, false, 2},
		{`{"sql": "select 1"}`, true, false, 3},
		{`{"sql": "select 1"}`, true, false, 3},
		{`{"sql": "select 1"}`, false, true, 4},
	} {
		b.tool.input, b.tool.background = step.input, step.background
		b.call(t, fmt.Sprintf("call_%d", i), step.arguments)
		if len(*asked) != step.asked {
			t.Errorf("step %d: asked %d times, want %d", i, len(*asked), step.asked)
		}
	}
	isInput := func(e message.EffectLine) bool { return e.Kind == "input" }
	if slices.ContainsFunc((*asked)[1].Effects, isInput) || !slices.ContainsFunc((*asked)[2].Effects, isInput) {
		t.Errorf("shown are %+v", *asked)
	}
}

// Where another program carries a call out, toold's sandbox does not keep it from the network.
func TestOnlyACallInTheSandboxIsSaidToReachNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Ask, &probe{})
	defer b.stop(t)
	b.workspace.opt.Profile = sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: "/nowhere"}
	b.tool.does = policy.Effect{Kind: policy.Net, Host: "x.example"}
	b.SetPolicy(compiled(t, policy.File{Name: "user", Defaults: policy.Defaults{Net: policy.Ask}}))
	asked := willing(t, b)
	for i, elsewhere := range []bool{false, true} {
		b.tool.elsewhere = elsewhere
		b.call(t, fmt.Sprintf("call_%d", i), `{}`)
		isSandbox := func(e message.EffectLine) bool { return e.Kind == "sandbox" }
		if slices.ContainsFunc((*asked)[i].Effects, isSandbox) == elsewhere {
			t.Errorf("elsewhere %v: shown are %+v", elsewhere, (*asked)[i].Effects)
		}
	}
}

// A yes to a call that also looks at the attributes of a file does not open the file to its programs.
func TestAnApprovalDoesNotOpenWhatIsOnlyLookedAt(t *testing.T) {
	t.Parallel()
	var opened []policy.Effect
	tool := &probe{run: func(_ context.Context, io tools.IO) tools.Result {
		opened = io.Opened
		return tools.Result{}
	}}
	b := newBench(t, policy.Ask, tool)
	defer b.stop(t)
	asked := willing(t, b)
	for i, part := range []string{"", policy.PartAttributes} {
		tool.does = policy.Effect{Kind: policy.Read, Path: "/nowhere/.env", Canonical: "/nowhere/.env", Part: part}
		b.call(t, "call_"+part, `{}`)
		if len(*asked) != i+1 || (len(opened) == 1) != (part == "") {
			t.Errorf("part %q: asked %d times, opened %v", part, len(*asked), opened)
		}
	}
}

// newMaking is a bench whose calls run "make all", for which the policy asks.
func newMaking(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, policy.Ask, &probe{})
	b.tool.does = policy.Effect{Kind: policy.Exec, Argv: []policy.Word{{Text: "make"}, {Text: "all"}}}
	rules := compiled(t, policy.File{
		Name: "user", Defaults: policy.Defaults{Bash: policy.Ask},
	})
	b.SetPolicy(rules)
	return b
}

func TestASuggestionNamesEarlierCallsThatItWouldAllow(t *testing.T) {
	t.Parallel()
	b := newMaking(t)
	b.workspace.opt.Remember = remembering(func([]policy.Change, string, string) error { return nil })
	for i, approve := range []bool{true, false} {
		leave := b.approvals.Join(decider(b, approval.Verdict{Approve: approve, By: "ada"}))
		b.call(t, fmt.Sprint("call_", i), fmt.Sprintf(`{"command": "make %d"}`, i))
		b.call(t, fmt.Sprint("same_", i), `{"command": "the same"}`)
		leave()
	}
	h := newHesitant()
	defer b.approvals.Join(h)()
	b.submit("call_2", `{"command": "the same"}`)
	show := (<-h.asked).Show
	b.stop(t)
	i := slices.IndexFunc(show.Suggestions, func(s message.Suggestion) bool { return s.Remember == "command" })
	if i < 0 || !slices.Equal(show.Suggestions[i].WouldAllow, []string{"probe make 0"}) || !slices.Equal(show.Suggestions[i].AllowsRefused, []string{"probe make 1"}) {
		t.Errorf("suggested are %+v", show.Suggestions)
	}
}

func TestAnAnswerBecomesARuleOfThePolicyFile(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		verdict approval.Verdict
		without bool   // a policy file of the user's own
		want    string // what is written
		failure string // why it is not
	}{
		{approval.Verdict{Approve: true, By: "ada", Remember: "command"}, false, `make all`, ""},
		{approval.Verdict{Approve: true, By: "ada", Remember: "prefix"}, false, "", "no rule for this prefix lets the call run"},
		{approval.Verdict{Approve: true, By: "ada", Remember: "rule", Pattern: "make {all,test}"}, false, `make {all,test}`, ""},
		{approval.Verdict{Approve: true, By: "ada", Remember: "rule", Pattern: "go test"}, false, "", "would still be asked"},
		{approval.Verdict{Approve: true, By: "ada", Remember: "command"}, true, "", "no policy file of your own"},
		{approval.Verdict{Approve: true, By: "ada", Remember: "command", Arguments: `{"a":1}`}, false, "", "makes no rule"},
		{approval.Verdict{By: "ada", Remember: "command"}, false, "", "only a yes is remembered"},
		{approval.Verdict{Approve: true, By: "ada", Remember: "once"}, false, "", ""},
	} {
		b := newMaking(t)
		var written []string
		if !row.without {
			b.workspace.opt.Remember = remembering(func(changes []policy.Change, person, call string) error {
				for _, c := range changes {
					written = append(written, strings.Join(c.Rule.Run, ","), person, call)
				}
				return nil
			})
		}
		h := newHesitant()
		leave := b.approvals.Join(h)
		b.submit("call_1", `{}`)
		question := <-h.asked
		err := b.approvals.Resolve(question.ID, row.verdict)
		b.stop(t)
		leave()
		want := []string{row.want, "ada", "call_1"}
		if row.want == "" {
			want = nil
		}
		if !slices.Equal(written, want) {
			t.Errorf("%+v: %q is written", row.verdict, written)
		}
		if (err == nil) != (row.failure == "") || err != nil && !strings.Contains(err.Error(), row.failure) {
			t.Errorf("%+v: the answer is taken with %v", row.verdict, err)
		}
		if offered := question.Show.Remembers("command"); offered == row.without || question.Show.Remembers("prefix") {
			t.Errorf("%+v: suggested are %+v", row.verdict, question.Show.Suggestions)
		}
	}
}

// What a person wrote is not what the agent sent, which was not approved.
func TestAYesToOtherArgumentsIsNotRemembered(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Ask, &probe{})
	defer b.stop(t)
	b.SetPolicy(compiled(t, policy.File{
		Name: "writes", OncePer: "conversation", Defaults: policy.Defaults{Write: policy.Ask},
	}))
	b.tool.does = policy.Effect{Kind: policy.Write, Path: "/nowhere/x", Canonical: "/nowhere/x"}
	asked := 0
	defer b.approvals.Join(onAsked(func(r approval.Request[message.ApprovalRequest]) {
		asked++
		for _, scope := range []string{"conversation", "command", ""} {
			err := b.approvals.Resolve(r.ID, approval.Verdict{Approve: true, By: "ada", Arguments: `{"n": 2}`, Remember: scope})
			if (err == nil) != (scope == "") {
				t.Errorf("an edited call, to be remembered for %q: %v", scope, err)
			}
		}
	}))()
	for n := range 2 {
		if b.call(t, fmt.Sprint("call_", n), `{"n": 1}`); asked != n+1 {
			t.Errorf("after call %d, asked %d times", n, asked)
		}
	}
}

func remembering(change func([]policy.Change, string, string) error) func() func([]policy.Change, string, string) error {
	return func() func([]policy.Change, string, string) error { return change }
}
