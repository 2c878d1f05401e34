package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

func TestACallThatWasCancelledBeforeItCameDoesNotRun(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	for range 2 { // the second is harmless
		if !b.CancelEarly(t.Context(), "agent", new(string), "call_1") {
			t.Fatal("an unknown id was not cancelled early")
		}
	}
	f := b.call(t, "call_1", `{}`)
	wantError(t, f, message.Cancelled, "cancelled before it came")
	if again := b.call(t, "call_1", `{}`); !again.Return.Replayed || again.Return.ID != f.Return.ID {
		t.Errorf("the repeat got %+v", again.Return)
	}
	if b.CancelEarly(t.Context(), "agent", new(string), "call_1") {
		t.Error("an id was cancelled early whose call has ended")
	}
	if f := b.call(t, "call_2", `{}`); f.Return.Status != "success" {
		t.Errorf("another call got %+v", f.Return)
	}
	b.stop(t)
	if n, left := b.tool.ran.Load(), b.earlyCancels["agent"]; n != 1 || len(left) != 0 { // they would take the place of others
		t.Errorf("the tool ran %d times, and the cancels of %q are left", n, left)
	}
}

// No record says yet that the call has come.
func TestAnEarlyCancelStopsACallThatIsBeingJudged(t *testing.T) {
	t.Parallel()
	slow := &slowBuild{entered: make(chan struct{}, 1), release: make(chan struct{})}
	b := newBench(t, policy.Allow, &slow.probe)
	registry := must.Get(tools.NewRegistry(slow))(t)
	b.workspace.opt.Registry = registry
	w, wake := b.submit("call_1", `{}`)
	<-slow.entered
	if !b.CancelEarly(t.Context(), "agent", new(string), "call_1") {
		t.Error("the cancel was refused")
	}
	close(slow.release)
	wantError(t, final(t, w, wake), message.Cancelled, "the call was cancelled")
	b.stop(t)
	if n := slow.ran.Load(); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
}

func TestACallThatIsCancelledBeforeItStartsDoesNotRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Allow, &probe{steps: []string{}})
	b.tool.prepare = func() { b.Find("agent", "call_1")[0].Cancel("enough") } // while its intent is recorded
	wantError(t, b.call(t, "call_1", `{}`), message.Cancelled, "enough")
	b.stop(t)
	if n := b.tool.ran.Load(); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
}

// again is another daemon on the journal of a bench, after the first one died.
func (b *bench) again(t *testing.T) *bench {
	t.Helper()
	must.Do(t, b.journal.Close())
	j := must.Get(journal.Open(t.Context(), b.dir, journal.Self()))(t)
	t.Cleanup(func() { j.Close() })
	next := newBenchOn(t, j, policy.Allow, &probe{})
	next.dir = b.dir
	must.Do(t, next.Recover(t.Context()))
	return next
}

func TestAnEarlyCancelOutlivesTheDaemonUntilItsCallIsAnswered(t *testing.T) {
	first := newBench(t, policy.Allow, &probe{})
	for _, id := range []string{"call_1", "call_2"} {
		if !first.CancelEarly(t.Context(), "agent", new(string), id) {
			t.Fatal("an unknown id was not cancelled early")
		}
	}
	second := first.again(t)
	wantError(t, second.call(t, "call_1", `{}`), message.Cancelled, "cancelled before it came")
	third := second.again(t)
	if left := third.journal.EarlyCancels(); len(left["agent"]) != 1 || left["agent"][0] != third.journal.EarlyCancelName(new(string), "call_2") {
		t.Errorf("the journal has %v", left)
	}
	wantError(t, third.call(t, "call_1", `{}`), message.Cancelled, "cancelled before it came")
	wantError(t, third.call(t, "call_2", `{}`), message.Cancelled, "cancelled before it came")
	if n := second.tool.ran.Load() + third.tool.ran.Load(); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
}

func TestACallWhoseCancelCannotBeRecordedStaysCancelled(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	if !b.CancelEarly(t.Context(), "agent", new(string), "call_1") {
		t.Fatal("an unknown id was not cancelled early")
	}
	must.Do(t, b.journal.Close())
	for range 2 {
		wantError(t, b.call(t, "call_1", `{}`), message.InternalError, "cannot journal")
	}
	if b.CancelEarly(t.Context(), "agent", new(string), "call_2") {
		t.Error("an early cancel is promised that no journal has")
	}
	if b.earlyCancels.first("agent", b.journal.EarlyCancelName(new(string), "call_1")) == "" {
		t.Error("the early cancel is gone")
	}
}

// of is a call of an agent, with the probe.
func (b *bench) of(t *testing.T, agent, id string) *message.ToolReturn {
	t.Helper()
	return speaker{"agent", agent, ""}.says(t, b, id, "probe", `{}`)
}

func TestAnEarlyCancelIsThatOfItsAgent(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	b.of(t, "a1", "call_2") // another's use of an id is no matter
	a2 := "a2"
	for _, id := range []string{"call_1", "call_2"} {
		if !b.CancelEarly(t.Context(), "agent", &a2, id) {
			t.Errorf("%s was not cancelled early", id)
		}
		b = b.again(t)
		for _, agent := range []string{"a1", "", "a3"} {
			if ret := b.of(t, agent, id); ret.Status != "success" {
				t.Errorf("%s, which %q did not cancel, got %+v", id, agent, ret)
			}
		}
		for range 2 {
			if ret := b.of(t, "a2", id); ret.ErrorType == nil || *ret.ErrorType != message.Cancelled {
				t.Errorf("%s, which is cancelled, got %+v", id, ret)
			}
		}
	}
	if left := b.again(t).journal.EarlyCancels(); len(left["agent"]) != 0 {
		t.Errorf("the journal still has %q", left)
	}
}

// Which agent's call it means is not known, and what was cancelled must not run.
func TestAnEarlyCancelWithoutAnAgentIsThatOfEveryOne(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	if !b.CancelEarly(t.Context(), "agent", nil, "call_1") {
		t.Fatal("an unknown id was not cancelled early")
	}
	for _, agent := range []string{"a1", "a2", ""} {
		if ret := b.of(t, agent, "call_1"); ret.ErrorType == nil || *ret.ErrorType != message.Cancelled {
			t.Errorf("%q got %+v", agent, ret)
		}
		b = b.again(t)
	}
	if ret := b.of(t, "a1", "call_2"); ret.Status != "success" {
		t.Errorf("another call got %+v", ret)
	}
}

func TestAnEarlyCancelOfAnItemIsThatOfWhoHasBegunIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Allow, &probe{})
	part := func(agent, id string) *message.ToolReturn {
		wake, woken := waker()
		return final(t, b.Submit(Submission{
			Client: "agent", Request: &message.Request{Dialect: message.OpenAIShell, Item: "sh_1", Work: "of all", Origin: message.Origin{AgentID: agent}},
			Call: message.ToolCall{ID: id, Name: "probe", Arguments: json.RawMessage(`{}`)}, Wake: wake,
		}), woken).Return
	}
	part("a1", "sh_1#1")
	if !b.CancelEarly(t.Context(), "agent", nil, "sh_1") {
		t.Error("it was not cancelled early")
	}
	for agent, id := range map[string]string{"a1": "sh_1#2", "a2": "sh_1#1"} {
		if ret := part(agent, id); ret.Cancelled != (agent == "a1") {
			t.Errorf("%s of %s got %+v", id, agent, ret)
		}
	}
}

func TestEarlyCancelsAreBounded(t *testing.T) {
	f := make(earlyCancels)
	for i := range maxEarlyCancels + 1 {
		f.add("agent", fmt.Sprint(i))
	}
	for _, x := range []struct{ client, id, want string }{{"agent", "0", ""}, {"agent", "1", "1"}, {"agent", "1", ""}, {"other", "2", ""}} {
		if got := f.first(x.client, x.id); got != x.want {
			t.Errorf("%s has %s: %q, want %q", x.client, x.id, got, x.want)
		}
		f.remove(x.client, x.id)
	}
}

func TestAQueuedCallThatIsCancelledNeverStarts(t *testing.T) {
	t.Parallel()
	tool, begun, end := holding()
	b := newBench(t, policy.Allow, tool)
	for i := range 4 {
		b.submit(fmt.Sprint(i), `{}`)
		<-begun
	}
	places := func(w *Watcher) (all []int) {
		for _, e := range w.Call().Events(0) {
			if q, ok := e.(message.ToolQueued); ok {
				all = append(all, q.Position)
			}
		}
		return all
	}
	queue := func(id string, place int) (*Watcher, <-chan struct{}) {
		w, wake := b.submit(id, `{}`)
		for !slices.Contains(places(w), place) {
			<-wake
		}
		return w, wake
	}
	first, gone := queue("first", 1)
	w, wake := queue("queued", 2)
	last, moved := queue("last", 3)
	list, err := b.List(t.Context(), "agent", "", false)
	if err != nil || len(list) != 7 || list[5].State != message.CallQueued || list[5].Position != 2 {
		t.Errorf("listed are %+v, %v", list, err)
	}
	w.Call().Cancel("not needed")
	wantError(t, final(t, w, wake), message.Cancelled, "not needed")
	for len(places(last)) < 2 {
		<-moved
	}
	if got, others := places(last), places(first); !slices.Equal(got, []int{3, 2}) || len(others) != 1 {
		t.Errorf("the call behind it hears of the places %v, that before it of %v", got, others)
	}
	for w, wake := range map[*Watcher]<-chan struct{}{first: gone, last: moved} {
		w.Call().Cancel("")
		final(t, w, wake)
	}
	close(end)
	b.stop(t)
	if n := b.tool.ran.Load(); n != 4 {
		t.Errorf("the tool ran %d times", n)
	}
}

func TestEachStopHasItsCause(t *testing.T) {
	for cause, stop := range map[string]func(b *bench, w *Watcher){
		message.ByCancel:     func(_ *bench, w *Watcher) { w.Call().Cancel("not needed") },
		message.ByClientGone: func(_ *bench, w *Watcher) { w.Detach() },
		message.ByShutdown:   func(b *bench, _ *Watcher) { go b.Shutdown(context.Background()) },
	} {
		begun, ended := make(chan struct{}), make(chan struct{})
		b := newBench(t, policy.Allow, &probe{run: func(ctx context.Context, io tools.IO) tools.Result {
			close(begun)
			defer close(ended)
			r := untilStopped(ctx, io)
			r.Text = "as far as it got"
			return r
		}})
		b.opt.Limits.Linger = 0
		w, _ := b.submit("call_1", `{}`)
		<-begun
		stop(b, w)
		<-ended // a new watcher before would keep it alive
		f := finalOf(t, w)
		ret := f.Return
		text := map[string]string{
			message.ByCancel: "the call was cancelled: not needed", message.ByClientGone: "the client went away", message.ByShutdown: "toold was stopped",
		}[cause]
		if ret.Cause == nil || *ret.Cause != cause || !strings.Contains(ret.Result, text) || !strings.Contains(ret.Result, "as far as it got") {
			t.Errorf("%s: got cause %v, %q", cause, ret.Cause, ret.Result)
		}
	}
}

// finalOf waits for the end of a call without watching it.
func finalOf(t *testing.T, w *Watcher) Final {
	t.Helper()
	wake := make(chan struct{}, 100)
	return final(t, w.Call().Watch(func() { wake <- struct{}{} }), wake)
}

// The next daemon knows by the record that a call which it continues is a part.
func TestAnItemIsCancelledByItsIDAfterARestart(t *testing.T) {
	l := newLives(t)
	part := func(b *bench) (*Watcher, <-chan struct{}) {
		wake, woken := waker()
		return b.Submit(Submission{
			Client: "agent", Keep: true, Request: &message.Request{Dialect: message.OpenAIShell, Item: "sh_1", Work: "of all"},
			Call: message.ToolCall{ID: "sh_1#2", Name: "probe", Arguments: json.RawMessage(`{}`)}, Wake: wake,
		}), woken
	}
	first, h := l.next(t, policy.Ask, nil), newHesitant()
	first.approvals.Join(h)
	part(first)
	<-h.asked
	halt(t, first)
	second := l.next(t, policy.Ask, nil)
	for _, c := range second.Find("agent", "sh_1") {
		c.Cancel("enough")
	}
	w, wake := part(second)
	if wantError(t, final(t, w, wake), message.Cancelled, "enough"); l.ran() != 0 {
		t.Errorf("it ran %d times", l.ran())
	}
}
