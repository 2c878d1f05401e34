package dispatch

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

func (b *bench) judge(t *testing.T, id, tool, args string) Final {
	t.Helper()
	wake := make(chan struct{}, 1)
	w := b.Submit(Submission{
		Client: "agent", Conn: "c1", Request: &message.Request{Dialect: message.OpenLetta, JudgeOnly: true},
		Call: message.ToolCall{ID: id, Name: tool, Arguments: json.RawMessage(args)},
		Wake: func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		},
	})
	return final(t, w, wake)
}

func TestAJudgedCallIsRecordedAndDoesNotRun(t *testing.T) {
	tool := &probe{}
	b := newBench(t, policy.Allow, tool)
	f := b.judge(t, "call_1", "probe", `{}`)
	rec, err := b.journal.FindAny(t.Context(), "call_1")
	if err != nil || rec.Decision.Action != "allow" || !rec.IntendedAt.IsZero() || len(rec.Result) == 0 {
		t.Errorf("the journal has %+v, %v", rec, err)
	}
	if f.Return == nil || f.Return.Status != "success" || tool.ran.Load() != 0 {
		t.Errorf("the return is %+v; the tool ran %d times", f.Return, tool.ran.Load())
	}
	if other := b.call(t, "call_1", `{}`); other.Err == nil || other.Err.Type != message.DuplicateToolCall {
		t.Errorf("the same call, to be run, got %+v", other)
	}
	wantError(t, b.judge(t, "call_2", "probe", `{"bad": 1}`), message.InvalidArguments, "it is bad")
}

func TestAJudgedCallOfAnUnknownToolNeedsARuleOrAPerson(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	if f := b.judge(t, "call_1", "WebFetch", `{"url": "x"}`); f.Return == nil || f.Return.Status == "success" {
		t.Errorf("with no one to ask, the return is %+v", f.Return)
	}
	rules, err := policy.Compile(policy.Options{Workspace: "/nowhere"}, policy.File{
		Name: "test", Commands: []policy.Rule{{ID: "fetch", Action: policy.Allow, Run: []string{"tool:WebFetch"}}, {ID: "no-search", Action: policy.Deny, Run: []string{"tool:*Search"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.SetPolicy(rules)
	if f := b.judge(t, "call_2", "WebFetch", `{"url": "x"}`); f.Return == nil || f.Return.Status != "success" {
		t.Errorf("with a rule, the return is %+v", f.Return)
	}
	if f := b.judge(t, "call_3", "WebSearch", `{}`); f.Return == nil || !strings.Contains(f.Return.Result, "no-search") {
		t.Errorf("a denied one returned %+v", f.Return)
	}
}
