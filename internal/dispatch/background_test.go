package dispatch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// serving is a background command that runs until it is stopped.
func serving() *probe {
	return &probe{background: true, run: func(ctx context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{PID: 42, Terminal: "split"})
		io.Output(tools.Stdout, []byte("listening\n"))
		return untilStopped(ctx, io)
	}}
}

// begin starts a background call and returns it.
func (b *bench) begin(t *testing.T, id string) *Call {
	t.Helper()
	f := b.call(t, id, `{}`)
	if f.Return == nil || f.Return.Status != "success" || f.Return.Background == nil || f.Background == nil {
		t.Fatalf("got %+v, %+v", f, f.Return)
	}
	return f.Background
}

// cancelled stops a call and waits for its end.
func (c *Call) cancelled(t *testing.T, why string) Final {
	t.Helper()
	wake, woken := waker()
	w := c.Watch(wake)
	c.Cancel(why)
	return final(t, w, woken)
}

func TestABackgroundCallIsACallOfItsOwn(t *testing.T) {
	b := newBench(t, policy.Allow, serving())
	c := b.begin(t, "call_1")
	if !strings.HasPrefix(c.ID, message.BackgroundPrefix) || c.BackgroundOf().ID != "call_1" {
		t.Fatalf("it is %s of %v", c.ID, c.BackgroundOf())
	}
	rec, err := b.journal.FindAs(t.Context(), "agent", "", c.ID)
	if err != nil || rec.State != journal.Running || rec.IntendedAt.IsZero() || rec.Decision.Action != "allow" || rec.BackgroundOf != "call_1" {
		t.Errorf("the journal has %+v, %v", rec, err)
	}
	list, err := b.List(t.Context(), "agent", "", false)
	if err != nil || len(list) != 1 || list[0].CallID != c.ID || list[0].State != message.CallRunning || list[0].PID != 42 {
		t.Errorf("listed are %+v, %v", list, err)
	}
	again := b.call(t, "call_1", `{}`)
	if again.Background != c || !again.Return.Replayed || b.tool.ran.Load() != 1 {
		t.Errorf("the repeat got %+v after %d runs", again, b.tool.ran.Load())
	}
	if end := endOf(again.Return); !strings.Contains(end, c.ID) {
		t.Errorf("a model that asks about call_1 is answered %q", end)
	}
	end := c.cancelled(t, "enough")
	if *end.Return.ErrorType != message.Cancelled || *end.Return.Cause != message.ByCancel || !strings.Contains(end.Return.Result, "enough") {
		t.Errorf("it ended with %+v", end.Return)
	}
	list, err = b.List(t.Context(), "agent", "", true)
	if err != nil || len(list) != 2 || list[1].CallID != c.ID || list[1].State != message.CallEnded || list[1].StdoutBytes != 10 {
		t.Errorf("after the end listed are %+v, %v", list, err)
	}
}

func TestABackgroundCallNeedsNoWatcher(t *testing.T) {
	b := newBench(t, policy.Allow, serving())
	b.opt.Limits.Linger = 0
	c := b.begin(t, "call_1")
	c.Watch(func() {}).Detach()
	if c.leaving != nil {
		t.Error("it is stopped when its watchers leave")
	}
	must.Do(t, b.Shutdown(t.Context()))
	rec, err := b.journal.FindAs(t.Context(), "agent", "", c.ID)
	if err != nil || rec.ErrorType != "shutdown" {
		t.Errorf("after the shutdown the journal has %+v, %v", rec, err)
	}
}

func TestBackgroundCallsAreLimited(t *testing.T) {
	b := newBench(t, policy.Allow, serving())
	b.begin(t, "a")
	second := b.begin(t, "b")
	wantError(t, b.call(t, "c", `{}`), message.TooManyCalls, "2 background calls run already")
	second.cancelled(t, "")
	b.begin(t, "d")
	b.opt.Limits.Background = 0
	wantError(t, b.call(t, "e", `{}`), message.InvalidArguments, "toold serve")
	must.Do(t, b.Shutdown(t.Context()))
}

func TestWhatCannotStartIsNoBackgroundCall(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{background: true, run: func(context.Context, tools.IO) tools.Result {
		return tools.Result{IsError: true, Failure: tools.SandboxUnavailable, Text: "no sandbox here"}
	}})
	wantError(t, b.call(t, "call_1", `{}`), message.SandboxUnavailable, "no sandbox here")
	unrecorded := newBench(t, policy.Allow, serving())
	unrecorded.Observe(func(_ *Call, event any) {
		if _, begun := event.(message.PolicyDecision); begun {
			must.Do(t, os.Rename(filepath.Join(unrecorded.dir, "journal", "00000001.log"), filepath.Join(unrecorded.dir, "away")))
		}
	})
	wantError(t, unrecorded.call(t, "call_1", `{}`), message.InternalError, "the background call cannot be journalled, so nothing ran")
	unrecorded.stop(t)
}

func TestADeniedBackgroundCallDoesNotRun(t *testing.T) {
	b := newBench(t, policy.Deny, serving())
	wantError(t, b.call(t, "call_1", `{}`), message.Denied, "denied by rule")
	if n := b.tool.ran.Load(); n != 0 {
		t.Errorf("it ran %d times", n)
	}
}

func TestNoRequestMayTakeABackgroundID(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	f := b.call(t, message.BackgroundPrefix+"1", `{}`)
	if f.Err == nil || f.Err.Type != message.DuplicateToolCall || !strings.Contains(f.Err.Message, "reserved") {
		t.Errorf("got %+v", f)
	}
}

func TestTheJoinedHearOfEveryBackgroundCall(t *testing.T) {
	b := newBench(t, policy.Allow, serving())
	first := b.begin(t, "a")
	var heard []*Call
	leave := b.Join("agent", func(c *Call) { heard = append(heard, c) })
	b.Join("somebody else", func(c *Call) { t.Errorf("another client heard of %s", c.ID) })
	second := b.begin(t, "b")
	leave()
	if len(heard) != 2 || heard[0] != first || heard[1] != second {
		t.Errorf("heard of %v", heard)
	}
	must.Do(t, b.Shutdown(t.Context()))
}

func TestWhoComesBackHearsOfTheEndsThatNobodyWasTold(t *testing.T) {
	b := newBench(t, policy.Allow, serving())
	first, second := b.begin(t, "a"), b.begin(t, "b")
	for _, c := range []*Call{first, second} {
		c.cancelled(t, "enough")
	}
	b.Delivered(second)
	hear := func(client string) (heard []*Call) {
		b.Join(client, func(c *Call) { heard = append(heard, c) })()
		return heard
	}
	if heard := hear("somebody"); len(heard) != 0 {
		t.Errorf("another client heard of %v", heard)
	}
	heard := hear("agent")
	if len(heard) != 1 || heard[0].ID != first.ID || heard[0].BackgroundOf().ID != "a" {
		t.Fatalf("heard of %v", heard)
	}
	wake := make(chan struct{}, 100)
	end := final(t, heard[0].Watch(func() { wake <- struct{}{} }), wake)
	if end.Return.CallID != first.ID || *end.Return.Cause != message.ByCancel {
		t.Errorf("it ended with %+v", end.Return)
	}
	b.Delivered(heard[0])
	if heard := hear("agent"); len(heard) != 0 {
		t.Errorf("an end that was told is told again: %v", heard)
	}
	if again := b.call(t, "a", `{}`); again.Background == nil || again.Background.ID != first.ID || len(again.Background.Events(0)) != 1 {
		t.Errorf("the repeat of the request got %+v", again)
	}
}

// The return of a call that began a background call says on which terminal that runs.
func TestWhoWaitsForTheBeginningOfACallFindsHowItBegan(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Allow, &probe{})
	for range 2000 {
		c := newProbeCall(b, "call_1")
		missed := make(chan bool)
		// Ends with the beginning.
		go func() {
			<-liveCall{c}.Changed()
			began, _ := c.start()
			missed <- began == nil
		}()
		b.started(c, tools.Started{PID: 42, Terminal: "split"})
		if <-missed {
			t.Fatal("it has begun, and nothing says how")
		}
	}
}

// The cancel names the call that begins it: no other id is known yet.
func TestACancelDuringTheStartOfABackgroundCallStopsIt(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	b := newBench(t, policy.Allow, &probe{background: true, run: func(ctx context.Context, io tools.IO) tools.Result {
		close(begun)
		return untilStopped(ctx, io)
	}})
	w, woken := b.submit("call_1", `{}`)
	<-begun
	w.Call().Cancel("enough")
	wantError(t, final(t, w, woken), message.Cancelled, "enough")
	b.stop(t)
}
