package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

func reading(id, args string) Submission {
	return Submission{
		Client: "agent", Request: &message.Request{}, Wake: func() {},
		Call: message.ToolCall{ID: id, Name: "probe", Arguments: json.RawMessage(args)},
	}
}

func TestASeriesOfReadsIsRecordedAsOneCall(t *testing.T) {
	t.Parallel()
	tool := &probe{reads: true}
	b := newBench(t, policy.Allow, tool)
	l := must.Get(b.Look(reading("look_1", `{}`)))(t)
	for _, step := range []struct {
		action policy.Action
		args   string
		reads  bool
		result tools.Result
		want   string // of the error
	}{
		{policy.Allow, `{}`, true, tools.Result{Text: "content"}, ""},
		{policy.Deny, `{}`, true, tools.Result{}, "denied by rule defaults.read"},
		{policy.Ask, `{}`, true, tools.Result{}, ErrAsks.Error()},
		{policy.Allow, `{"bad": 1}`, true, tools.Result{}, "it is bad"},
		{policy.Allow, `{}`, false, tools.Result{}, "probe does more than read"},
		{policy.Allow, `{}`, true, tools.Result{Text: "no such file", IsError: true}, "no such file"},
	} {
		b.SetPolicy(readsAre(t, step.action))
		tool.reads, tool.run = step.reads, func(context.Context, tools.IO) tools.Result { return step.result }
		got, err := l.At(reading("any", step.args))
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) || got.Text != step.result.Text {
			t.Errorf("%+v: %+v, %v", step, got, err)
		}
	}
	if l.Over() {
		t.Error("it is over before it is closed")
	}
	l.Close()
	l.Close()
	if _, err := l.At(reading("any", `{}`)); !errors.Is(err, ErrLookOver) || !l.Over() {
		t.Errorf("after its end: %v", err)
	}
	b.stop(t)
	rec, err := b.journal.FindAny(t.Context(), "look_1")
	if err != nil || rec.State != journal.Returned || rec.Status != "success" {
		t.Fatalf("the journal has %+v, %v", rec, err)
	}
	ret, err := message.Record(rec.Result).Return()
	want := `probe the machine: done
probe the machine: denied by rule defaults.read
probe the machine: not done, rule defaults.read asks
a read: refused
probe the machine: refused
probe the machine: failed`
	if err != nil || ret.Result != want {
		t.Errorf("its return is %q, %v", ret.Result, err)
	}
	if ran := tool.ran.Load(); ran != 2 {
		t.Errorf("%d reads were carried out", ran)
	}
}

func TestASeriesListsAllItsReads(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Allow, &probe{reads: true})
	reads, calls := 0, 0
	for ; reads < 1001; calls++ {
		l := must.Get(b.Look(reading(fmt.Sprint("look_", calls), `{}`)))(t)
		var err error
		for err == nil && reads < 1001 {
			if _, err = l.At(reading("any", `{}`)); err == nil {
				reads++
			}
		}
		if err != nil && !errors.Is(err, ErrLookOver) {
			t.Fatal(err)
		}
		l.Close()
	}
	b.stop(t)
	listed := 0
	for i := range calls {
		rec := must.Get(b.journal.FindAny(t.Context(), fmt.Sprint("look_", i)))(t)
		ret := must.Get(message.Record(rec.Result).Return())(t)
		listed += strings.Count(ret.Result, "probe the machine: done")
	}
	if listed != reads {
		t.Errorf("%d calls list %d of %d reads", calls, listed, reads)
	}
}

func TestAfterACrashNobodyIsToldThatASeriesReadNothing(t *testing.T) {
	t.Parallel()
	l := newLives(t)
	b := l.next(t, policy.Allow, nil)
	b.tool.reads = true
	series := must.Get(b.Look(reading("look_1", `{}`)))(t)
	must.Get(series.At(reading("any", `{}`)))(t)
	kill(t, b)
	next := l.next(t, policy.Allow, nil)
	rec := must.Get(next.journal.FindAny(t.Context(), "look_1"))(t)
	ret := must.Get(message.Record(rec.Result).Return())(t)
	if ret.ErrorType == nil || *ret.ErrorType != message.UnknownAfterCrash {
		t.Errorf("it returned %+v", ret)
	}
	next.stop(t)
	b.stop(t)
}

func TestASeriesOfReadsIsRefusedLikeACall(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Allow, &probe{reads: true})
	b.call(t, "call_1", `{}`)
	var refused *LookError
	if _, err := b.Look(reading("call_1", `{}`)); !errors.As(err, &refused) {
		t.Errorf("the id of another call: %v", err)
	}
	b.stop(t)
	if _, err := b.Look(reading("look_1", `{}`)); !errors.As(err, &refused) || !strings.Contains(refused.Text, "stopping") {
		t.Errorf("while it stops: %v", err)
	}
}

func TestAnExplanationSaysHowACallWouldBeDecided(t *testing.T) {
	t.Parallel()
	tool := &probe{}
	b := newBench(t, policy.Ask, tool)
	defer b.stop(t)
	explain := func(args string, person bool) (message.PolicyExplanation, *message.Error) {
		return b.Explain("agent", "", reading("any", args).Call, person)
	}
	e, refused := explain(`{}`, false)
	if refused != nil || e.Action != "ask" || e.Rule != "defaults.read" || e.Change == "" || len(e.Effects) != 1 || e.Effects[0].Action != "ask" || e.Effects[0].Kind != "read" {
		t.Errorf("got %+v, %v", e, refused)
	}
	tool.does = policy.Effect{Kind: policy.Read, Path: "/home/nobody/.ssh/id", Canonical: "/home/nobody/.ssh/id"}
	if e, refused := explain(`{}`, false); refused != nil || e.Action != "deny" || e.Change != "" {
		t.Errorf("an agent learns how to lift a built-in rule: %+v, %v", e, refused)
	}
	if e, refused := explain(`{}`, true); refused != nil || e.Action != "deny" || e.Change == "" {
		t.Errorf("a person learns nothing: %+v, %v", e, refused)
	}
	if _, refused := explain(`{"bad": 1}`, true); refused == nil || refused.Type != message.InvalidArguments {
		t.Errorf("faulty arguments: %v", refused)
	}
	if tool.ran.Load() != 0 {
		t.Error("it ran")
	}
}
