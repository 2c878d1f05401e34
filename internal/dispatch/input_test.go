package dispatch

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

func TestInputReachesARunningCallAndIsAcknowledged(t *testing.T) {
	t.Parallel()
	begun, read, end := make(chan struct{}), make(chan tools.Input), make(chan struct{})
	b := newBench(t, policy.Allow, &probe{run: func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{PID: 42})
		close(begun)
		for range 2 {
			in := <-io.Input
			if len(in.Data) > 0 {
				in.Taken(true)
				in.Taken(true)
			}
			read <- in
		}
		<-end
		return tools.Result{Text: "done"}
	}})
	defer b.stop(t)
	w, wake := b.submit("call_1", `{}`)
	<-begun
	taken := make(chan bool, 200)
	send := func(in tools.Input) *message.Error { return w.Call().Input(in, func(was bool) { taken <- was }) }
	much := strings.Repeat("y\n", 1<<20) // what was read counts no more below
	must.Do(t, send(tools.Input{Data: []byte(much)}))
	if in := <-read; string(in.Data) != much || !<-taken {
		t.Errorf("the command read %d bytes", len(in.Data))
	}
	must.Do(t, send(tools.Input{EOF: true}))
	if in := <-read; !in.EOF || !<-taken {
		t.Errorf("the command read %+v", in)
	}
	for _, size := range []int{3 << 20, 2 << 20} { // together more than may wait
		switch e := send(tools.Input{Data: make([]byte, size)}); {
		case size == 3<<20 && e != nil:
			t.Fatalf("%d bytes: %v", size, e)
		case size == 2<<20 && (e == nil || e.Type != message.NotRunning || !strings.Contains(e.Message, "does not read its input")):
			t.Errorf("%d bytes more: %v", size, e)
		}
	}
	close(end)
	final(t, w, wake)
	if <-taken {
		t.Error("what the command did not read is acknowledged")
	}
	if e := send(tools.Input{Data: []byte("late")}); e == nil || e.Type != message.NotRunning || e.CallID != "call_1" {
		t.Errorf("after the end: %v", e)
	}
	if len(taken) > 0 {
		t.Errorf("%d answers more than pieces that were accepted", len(taken))
	}
}

func TestPiecesThatNoOneReadsAreFew(t *testing.T) {
	t.Parallel()
	tool, begun, end := holding()
	b := newBench(t, policy.Allow, tool)
	defer b.stop(t)
	w, _ := b.submit("call_1", `{}`)
	<-begun
	accepted := 0
	for w.Call().Input(tools.Input{Signal: "SIGINT"}, nil) == nil {
		if accepted++; accepted > 1000 {
			t.Fatal("there is no bound")
		}
	}
	if accepted < 10 {
		t.Errorf("%d signals are accepted", accepted)
	}
	close(end)
}

func TestEventsAreObservedInTheirOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Allow, &probe{})
	var seen, again []any
	var steps []Step
	var tool string
	b.Observe(func(c *Call, event any) {
		if seen = append(seen, event); c.ID != "call_1" {
			t.Errorf("seen is %+v of %s", event, c.ID)
		}
		if _, ok := event.(Final); ok {
			steps, tool = c.Steps(), c.Tool()
		}
	})
	b.Observe(func(_ *Call, event any) { again = append(again, event) })
	w, wake := b.submit("call_1", `{}`)
	final(t, w, wake)
	b.call(t, message.BackgroundPrefix+"1", `{}`) // is refused, so it never was a call
	b.stop(t)
	if want := w.Call().Events(0); len(want) == 0 || len(seen) < len(want) || len(again) != len(seen) {
		t.Errorf("seen are %d and %d of %d events", len(seen), len(again), len(want))
	}
	inOrder := slices.IsSortedFunc(steps, func(a, b Step) int { return a.From.Compare(b.From) })
	if len(steps) == 0 || !inOrder || tool != "probe" {
		t.Errorf("the steps of %s are %+v", tool, steps)
	}
}

func TestUnansweredCallsAreCountedByTheirState(t *testing.T) {
	t.Parallel()
	tool, begun := obedient()
	b := newBench(t, policy.Allow, tool)
	w, wake := b.submit("call_1", `{}`)
	<-begun
	if got := b.States(); got[message.CallRunning] != 1 || len(got) != 1 {
		t.Errorf("got %v", got)
	}
	w.Call().Cancel("")
	final(t, w, wake)
	b.stop(t)
	if got := b.States(); len(got) != 0 {
		t.Errorf("got %v when all are answered", got)
	}
}

func TestAPersonMayChangeACallBeforeItRuns(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		verdict    approval.Verdict
		background bool
		failure    string // why the answer is not taken
	}{
		{approval.Verdict{Approve: true, By: "ada", Arguments: `{"a": 1}`}, false, ""},
		{approval.Verdict{Approve: true, By: "ada", Arguments: `{"bad": 1}`}, false, "it is bad"},
		{approval.Verdict{By: "ada", Arguments: `{"a": 1}`}, false, "an answer of no changes nothing"},
		{approval.Verdict{Approve: true, By: "ada", Arguments: `{"a": 1}`}, true, "runs in the background"},
	} {
		b, h := newBench(t, policy.Ask, &probe{background: row.background}), newHesitant()
		leave := b.approvals.Join(h)
		w, wake, question := b.ask(h, "call_1")
		err := b.approvals.Resolve(question.ID, row.verdict)
		if (err == nil) != (row.failure == "") || err != nil && !strings.Contains(err.Error(), row.failure) {
			t.Errorf("%+v is taken with %v", row.verdict, err)
		}
		if err == nil {
			if r := final(t, w, wake).Return; r.Status != "success" || !strings.HasPrefix(r.Result, "A person changed this call before it ran.") {
				t.Errorf("%+v: the return is %+v", row.verdict, r)
			}
		}
		b.stop(t)
		leave()
	}
}

// roots are workspaces by their roots; the first is the default.
type roots []*Workspace

func (r roots) Use(_ context.Context, dir string) (*Workspace, func(), error) {
	for _, w := range r {
		if dir == "" || dir == w.opt.Root {
			return w, func() {}, nil
		}
	}
	return nil, nil, &workspaces.UnregisteredError{}
}

func TestAPersonCannotChangeACallIntoOneOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	b, h := newBench(t, policy.Ask, &probe{}), newHesitant()
	t.Cleanup(b.approvals.Join(h))
	other, none := t.TempDir(), t.TempDir()
	b.opt.Workspaces = roots{b.workspace, NewWorkspace(WorkspaceOptions{Root: other, Registry: b.opt.Registry, Policy: b.workspace.opt.Policy})}
	w, wake, question := b.ask(h, "call_1")
	for cwd, why := range map[string]string{other: "the edited call is one in the workspace " + other, none: "is in no registered workspace"} {
		v := approval.Verdict{Approve: true, By: "ada", Arguments: `{"cwd":"` + cwd + `"}`}
		if err := b.approvals.Resolve(question.ID, v); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("in %s it is taken with %v", cwd, err)
		}
	}
	b.resolve(t, question.ID, approval.Verdict{Approve: true, By: "ada", Arguments: `{"cwd":"/nowhere"}`})
	if r := final(t, w, wake).Return; r.Status != "success" || b.tool.ran.Load() != 1 {
		t.Errorf("the return is %+v", r)
	}
}

// Codex names no directory in what it asks for a file, but one near it. Meanwhile the workspace may be opened anew.
func TestAPersonMayChangeACallNearAnotherWorkspace(t *testing.T) {
	t.Parallel()
	b, h := newBench(t, policy.Ask, &probe{}), newHesitant()
	t.Cleanup(b.approvals.Join(h))
	near := t.TempDir()
	opened := func() *Workspace {
		return NewWorkspace(WorkspaceOptions{Root: near, Registry: b.opt.Registry, Policy: b.workspace.opt.Policy})
	}
	list := roots{b.workspace, opened()}
	b.opt.Workspaces = list
	wake, woken := waker()
	w := b.Submit(Submission{
		Client: "agent", Near: near, Request: &message.Request{},
		Call: message.ToolCall{ID: "call_1", Name: "probe", Arguments: json.RawMessage(`{}`)}, Wake: wake,
	})
	question := <-h.asked
	list[1] = opened()
	if err := b.approvals.Resolve(question.ID, approval.Verdict{Approve: true, By: "ada", Arguments: `{"cwd":"/nowhere"}`}); err == nil || !strings.Contains(err.Error(), "is one in the workspace /nowhere") {
		t.Errorf("in the first workspace it is taken with %v", err)
	}
	b.resolve(t, question.ID, approval.Verdict{Approve: true, By: "ada", Arguments: `{"a":1}`})
	if r := final(t, w, woken).Return; r.Status != "success" || b.tool.ran.Load() != 1 {
		t.Errorf("the return is %+v", r)
	}
}
