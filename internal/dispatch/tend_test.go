package dispatch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

// printing prints a number of bytes and starts no process.
func printing(n int) *probe {
	return &probe{run: func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{})
		io.Output(tools.Stdout, []byte(strings.Repeat("x", n)))
		return tools.Result{}
	}}
}

func (b *bench) spools(t *testing.T) int {
	t.Helper()
	list, err := spool.List(b.opt.SpoolDir)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestOldOutputIsRemovedAndThatOfRunningCallsIsNot(t *testing.T) {
	b := newBench(t, policy.Allow, printing(100))
	b.opt.Limits.SpoolKeep = time.Minute
	b.call(t, "old", `{}`)
	b.call(t, "young", `{}`)
	b.tool.background = true
	b.tool.run = serving().run
	running := b.begin(t, "running")
	printed(t, running)
	age(t, b, "old")
	age(t, b, running.ID)
	if err := b.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := b.spools(t); n != 2 {
		t.Errorf("%d folders are left, want those of the young and the running call", n)
	}
	if rec, err := b.journal.Find(t.Context(), "agent", running.ID); err != nil {
		t.Error(err)
	} else if _, err := os.Stat(rec.SpoolDir); err != nil {
		t.Errorf("the running call lost its output: %v", err)
	}
	if err := b.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// printed waits until a running call has printed something.
func printed(t *testing.T, c *Call) {
	t.Helper()
	for {
		changed := c.Capture().Changed()
		if n, _, _ := c.Capture().Totals(); n > 0 {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("it prints nothing")
		}
	}
}

// age makes the output of a call an hour old.
func age(t *testing.T, b *bench, id string) {
	t.Helper()
	rec, err := b.journal.Find(t.Context(), "agent", id)
	if err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(rec.SpoolDir, "stdout"), then, then); err != nil {
		t.Fatal(err)
	}
}

func TestOutputBeyondTheTotalIsRemovedWhileTheDaemonLives(t *testing.T) {
	b := newBench(t, policy.Allow, printing(1000))
	b.opt.Limits.SpoolTotal = 2500
	ctx, stop := context.WithCancel(t.Context())
	tended := make(chan struct{})
	go func() { defer close(tended); b.Tend(ctx) }()
	for _, id := range []string{"a", "b", "c", "d"} {
		b.call(t, id, `{}`)
		age(t, b, id)
	}
	for b.spools(t) > 2 { // the sweep that the last call woke
		b.recorded(1 << 20)
		if t.Context().Err() != nil {
			t.Fatal("nothing was removed")
		}
	}
	stop()
	<-tended
	last, err := b.journal.Find(t.Context(), "agent", "d")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(last.SpoolDir); err == nil && b.spools(t) == 0 {
		t.Error("everything was removed")
	}
}

func TestAReturnThatCouldNotBeJournalledIsGivenAgain(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	file, away := filepath.Join(b.dir, "journal", "00000001.log"), filepath.Join(b.dir, "away")
	b.tool.run = func(context.Context, tools.IO) tools.Result {
		if err := os.Rename(file, away); err != nil {
			t.Error(err)
		}
		return tools.Result{Text: "probed"}
	}
	first := b.call(t, "call_1", `{}`)
	if first.Return == nil || first.Return.Result != "probed" {
		t.Fatalf("got %+v", first)
	}
	if err := os.Rename(away, file); err != nil {
		t.Fatal(err)
	}
	wake := make(chan struct{}, 1)
	back := final(t, b.Rejoin(Key{Client: "agent", ID: "call_1"}, func() { wake <- struct{}{} }), wake)
	if back.Return == nil || back.Return.ID != first.Return.ID || !back.Return.Replayed {
		t.Errorf("who comes back gets %+v", back)
	}
	again := b.call(t, "call_1", `{}`)
	if again.Return == nil || again.Return.ID != first.Return.ID || !again.Return.Replayed || b.tool.ran.Load() != 1 {
		t.Fatalf("the repeat got %+v after %d runs", again, b.tool.ran.Load())
	}
	if stored, err := b.journal.Find(t.Context(), "agent", "call_1"); err != nil || len(stored.Result) == 0 {
		t.Errorf("it was not journalled with the repeat: %+v, %v", stored, err)
	}
}

func TestWhoComesBackForACallThatNobodyKnowsIsToldSo(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	wake := make(chan struct{}, 1)
	f := final(t, b.Rejoin(Key{Client: "agent", ID: "call_1"}, func() { wake <- struct{}{} }), wake)
	if f.Err == nil || f.Err.Type != message.NotFound || f.Err.CallID != "call_1" || !strings.Contains(f.Err.Message, "send it again") {
		t.Errorf("got %+v", f)
	}
}

func TestALostReturnIsSaidToBeLost(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	if _, _, err := b.journal.Receive(t.Context(), b.journalled(newProbeCall(b, "call_1"))); err != nil {
		t.Fatal(err)
	}
	f := b.call(t, "call_1", `{}`)
	if f.Err == nil || !strings.Contains(f.Err.Message, "could not be written to the journal") || b.tool.ran.Load() != 0 {
		t.Errorf("got %+v", f)
	}
}

func newProbeCall(b *bench, id string) *Call {
	c, _ := b.newCall(Submission{Client: "agent", Request: &message.Request{}, Call: message.ToolCall{ID: id, Name: "probe", Arguments: []byte(`{}`)}})
	return c
}

func TestNothingRunsWhenTheJournalWasDeleted(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	list, err := filepath.Glob(filepath.Join(b.dir, "journal", "*"))
	if err != nil || len(list) == 0 {
		t.Fatal(err, list)
	}
	for _, path := range list {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, b.call(t, "call_1", `{}`), message.InternalError, "Restart toold")
	if n := b.tool.ran.Load(); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
}
