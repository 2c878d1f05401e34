package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/calls"
)

// modelBench is a bench with the tools of a model for its calls beside the probe.
// rules are policies about them, in the words of a policy's command rules.
func modelBench(t *testing.T, tool *probe, denied ...string) *bench {
	t.Helper()
	b := newBench(t, policy.Allow, tool)
	opt := b.opt
	registry := must.Get(tools.NewRegistry(append(calls.New(), tool)...))(t)
	file := policy.File{Name: "test", Defaults: policy.Defaults{Read: policy.Allow, Unanalysable: policy.Ask}}
	if denied != nil {
		file.Commands = append(file.Commands, policy.Rule{ID: "no-kill", Action: policy.Deny, Run: denied})
	}
	rules := compiled(t, file)
	opt.Workspaces = only{NewWorkspace(WorkspaceOptions{Root: "/nowhere", Registry: registry, Policy: rules})}
	opt.Registry, opt.Approvals = registry, approval.New[message.ApprovalRequest]()
	b.Dispatcher = New(opt)
	t.Cleanup(func() {
		if err := b.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// speaker is who makes a call.
type speaker struct{ client, agent, conversation string }

func (s speaker) says(t *testing.T, b *bench, id, tool, args string) *message.ToolReturn {
	t.Helper()
	wake, woken := waker()
	w := b.Submit(Submission{
		Client: s.client, Request: &message.Request{Dialect: message.OpenLetta, Origin: message.Origin{AgentID: s.agent, ConversationID: s.conversation}},
		Call: message.ToolCall{ID: id, Name: tool, Arguments: json.RawMessage(args)}, Wake: wake,
	})
	ret := final(t, w, woken).Return
	if ret == nil {
		t.Fatalf("%s has no return", id)
	}
	return ret
}

func TestAModelFollowsItsBackgroundCall(t *testing.T) {
	more := make(chan struct{})
	b := modelBench(t, &probe{background: true, run: func(ctx context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{PID: 42, Terminal: "split"})
		io.Output(tools.Stdout, []byte("listening\n"))
		<-more
		io.Output(tools.Stderr, []byte("a request\n"))
		return untilStopped(ctx, io)
	}})
	me := speaker{"agent", "a", "c"}
	began := me.says(t, b, "call_1", "probe", `{}`)
	handle := began.Background.CallID
	for _, words := range []string{`bash_output {"call_id": "` + handle + `"`, `bash_kill {"call_id": "` + handle + `"`, "list_calls"} {
		if !strings.Contains(began.Result, words) {
			t.Errorf("%q does not say %q", began.Result, words)
		}
	}
	first := me.says(t, b, "call_2", "bash_output", `{"call_id":"`+handle+`","wait":60000}`)
	if want := "[" + handle + " is running; bytes 0-10 of 10 of combined; next offset 10]\nlistening\n"; first.Result != want {
		t.Errorf("got %q, want %q", first.Result, want)
	}
	close(more)
	next := me.says(t, b, "call_3", "bash_output", `{"call_id":"`+handle+`","offset":10,"wait":60000}`)
	if want := "[" + handle + " is running; bytes 10-20 of 20 of combined; next offset 20]\na request\n"; next.Result != want {
		t.Errorf("got %q, want %q", next.Result, want)
	}
	list := me.says(t, b, "call_4", "list_calls", `{}`)
	if !strings.HasPrefix(list.Result, handle+" running for ") || strings.Contains(list.Result, "\n") {
		t.Errorf("listed: %q", list.Result)
	}
	if ret := me.says(t, b, "call_5", "bash_kill", `{"call_id":"`+handle+`"}`); ret.Result != handle+" was stopped: cancelled." || ret.Status != "success" {
		t.Errorf("killed: %+v", ret)
	}
	last := me.says(t, b, "call_6", "bash_output", `{"call_id":"`+handle+`","stream":"stderr"}`)
	if want := "[" + handle + " ended: cancelled; bytes 0-10 of 10 of stderr]\na request\n"; last.Result != want {
		t.Errorf("got %q, want %q", last.Result, want)
	}
}

func TestAModelSeesTheCallsOfItsConversationOnly(t *testing.T) {
	b := modelBench(t, serving())
	me := speaker{"agent", "a", "c"}
	handle := me.says(t, b, "call_1", "probe", `{}`).Background.CallID
	for i, other := range []speaker{{"agent", "a", "other"}, {"agent", "other", "c"}, {"other", "a", "c"}, {"agent", "", ""}} {
		for _, tool := range []string{"bash_output", "bash_kill"} {
			ret := other.says(t, b, fmt.Sprint(tool, i), tool, `{"call_id":"`+handle+`"}`)
			if ret.Status != "error" || strings.Contains(ret.Result, "listening") || !strings.Contains(ret.Result, "no call of this conversation") {
				t.Errorf("%+v, %s: %s", other, tool, ret.Result)
			}
		}
		if ret := other.says(t, b, fmt.Sprint("list", i), "list_calls", `{"all":true}`); strings.Contains(ret.Result, handle) {
			t.Errorf("%+v is listed %s", other, ret.Result)
		}
	}
	if ret := me.says(t, b, "call_2", "bash_kill", `{"call_id":"`+handle+`"}`); ret.Status != "success" {
		t.Errorf("its own: %s", ret.Result)
	}
	for i, other := range []speaker{{"agent", "a", "other"}, {"agent", "other", "c"}} {
		ret := other.says(t, b, fmt.Sprint("after", i), "bash_output", `{"call_id":"`+handle+`"}`)
		if ret.Status != "error" || strings.Contains(ret.Result, "listening") {
			t.Errorf("%+v, after the end: %s", other, ret.Result)
		}
	}
}

// Weak generators repeat ids across agents.
func TestAnAgentFindsItsOwnCallOfAnIdThatAnotherUsedLater(t *testing.T) {
	b := modelBench(t, &probe{run: func(_ context.Context, io tools.IO) tools.Result {
		io.Output(tools.Stdout, []byte("listening\n"))
		return tools.Result{Exit: &tools.Exit{}}
	}})
	me, other := speaker{"agent", "a", "c"}, speaker{"agent", "b", "c"}
	for _, s := range []speaker{me, other} {
		s.says(t, b, "call_1", "probe", `{}`)
	}
	for _, s := range []speaker{me, other} {
		if ret := s.says(t, b, "call_2", "bash_output", `{"call_id":"call_1"}`); !strings.Contains(ret.Result, "ended: exit code 0") {
			t.Errorf("%+v: got %q", s, ret.Result)
		}
	}
}

// Any printable character may be in an agent's name and in an id.
func TestNoAgentAndIDAreTakenForOthers(t *testing.T) {
	tool, _, end := holding()
	b := newBench(t, policy.Allow, tool)
	submit := func(agent, id string) (*Watcher, <-chan struct{}) {
		wake, woken := waker()
		return b.Submit(Submission{
			Client: "agent", Request: &message.Request{Dialect: message.OpenLetta, Origin: message.Origin{AgentID: agent}},
			Call: message.ToolCall{ID: id, Name: "probe", Arguments: json.RawMessage(`{}`)}, Wake: wake,
		}), woken
	}
	one, oneWake := submit("a:b", "c")
	other, otherWake := submit("a", "b:c")
	if one.Call() == other.Call() {
		t.Error("one agent's call is attached to another's")
	}
	close(end)
	final(t, one, oneWake)
	final(t, other, otherWake)
	if n := b.tool.ran.Load(); n != 2 {
		t.Errorf("%d calls ran", n)
	}
}

// quickly is a tool that prints and starts no process.
func quickly() *probe {
	return &probe{run: func(_ context.Context, io tools.IO) tools.Result {
		io.Output(tools.Stdout, []byte("listening\n"))
		return tools.Result{Text: "probed"}
	}}
}

func TestWhatAToolPrintsWithoutAProcessCanBeRead(t *testing.T) {
	b := modelBench(t, quickly())
	me := speaker{"agent", "a", "c"}
	me.says(t, b, "call_1", "probe", `{}`)
	ret := me.says(t, b, "call_2", "bash_output", `{"call_id":"call_1"}`)
	if want := "[call_1 ended: success; bytes 0-10 of 10 of combined]\nlistening\n"; ret.Result != want {
		t.Errorf("got %q, want %q", ret.Result, want)
	}
}

func TestTheLatestCallsOfAConversationAreListedHoweverManyOthersHave(t *testing.T) {
	b := modelBench(t, quickly())
	me, other := speaker{"agent", "a", "c"}, speaker{"agent", "a", "other"}
	me.says(t, b, "mine", "probe", `{}`)
	for i := range endedShown + 1 {
		other.says(t, b, fmt.Sprint("other", i), "probe", `{}`)
	}
	if ret := me.says(t, b, "call_1", "list_calls", `{"all":true}`); !strings.HasPrefix(ret.Result, "mine ended") {
		t.Errorf("got %q", ret.Result)
	}
}

func TestACallCannotStopItself(t *testing.T) {
	b := modelBench(t, &probe{})
	ret := speaker{"agent", "", ""}.says(t, b, "call_1", "bash_kill", `{"call_id":"call_1"}`)
	if ret.Status != "error" || !strings.Contains(ret.Result, "no call of this conversation") {
		t.Errorf("got %+v", ret)
	}
}

func TestAPolicyMayDenyAModelsToolForCalls(t *testing.T) {
	b := modelBench(t, serving(), "bash_kill **")
	me := speaker{"agent", "a", "c"}
	handle := me.says(t, b, "call_1", "probe", `{}`).Background.CallID
	ret := me.says(t, b, "call_2", "bash_kill", `{"call_id":"`+handle+`"}`)
	if ret.ErrorType == nil || *ret.ErrorType != message.Denied || ret.Decision.Rule != "no-kill" {
		t.Errorf("got %+v", ret)
	}
	if ret := me.says(t, b, "call_3", "bash_output", `{"call_id":"`+handle+`"}`); ret.Status != "success" {
		t.Errorf("got %+v", ret)
	}
}

func TestWaitingForOutputEndsWithTheCall(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	b := modelBench(t, &probe{background: true, run: func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{PID: 42, Terminal: "split"})
		close(begun)
		<-end
		return tools.Result{Exit: &tools.Exit{Code: 3}, IsError: true}
	}})
	me := speaker{"agent", "a", "c"}
	handle := me.says(t, b, "call_1", "probe", `{}`).Background.CallID
	<-begun
	if ret := me.says(t, b, "call_2", "bash_output", `{"call_id":"`+handle+`","wait":1}`); !strings.Contains(ret.Result, "is running; bytes 0-0 of 0") {
		t.Errorf("got %q", ret.Result)
	}
	close(end)
	if ret := me.says(t, b, "call_3", "bash_output", `{"call_id":"`+handle+`","wait":120000}`); !strings.Contains(ret.Result, "ended: exit code 3; bytes 0-0 of 0") {
		t.Errorf("got %q", ret.Result)
	}
}
