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
	must.Do(t, os.Rename(away, file))
	wake := make(chan struct{}, 1)
	back := final(t, b.Rejoin(Key{Client: "agent", ID: "call_1"}, func() { wake <- struct{}{} }), wake)
	if back.Return == nil || back.Return.ID != first.Return.ID || !back.Return.Replayed {
		t.Errorf("who comes back gets %+v", back)
	}
	again := b.call(t, "call_1", `{}`)
	if again.Return == nil || again.Return.ID != first.Return.ID || !again.Return.Replayed || b.tool.ran.Load() != 1 {
		t.Fatalf("the repeat got %+v after %d runs", again, b.tool.ran.Load())
	}
	if stored, err := b.journal.FindAs(t.Context(), "agent", "", "call_1"); err != nil || len(stored.Result) == 0 {
		t.Errorf("it was not journalled with the repeat: %+v, %v", stored, err)
	}
}

// What could not be recorded while calls ran is recorded when the daemon stops.
func TestUnsavedReturnsAreRecordedWhenTooldStops(t *testing.T) {
	l := newLives(t)
	b := l.next(t, policy.Allow, nil)
	file, away := filepath.Join(b.dir, "journal", "00000001.log"), filepath.Join(b.dir, "away")
	end := make(chan struct{})
	begun := make(chan struct{}, 3)
	b.tool.run = func(context.Context, tools.IO) tools.Result {
		begun <- struct{}{}
		<-end
		return tools.Result{Text: "probed"}
	}
	firsts := map[string]Final{}
	calls := map[string]*Watcher{}
	wakes := map[string]<-chan struct{}{}
	for _, id := range []string{"call_1", "call_2", "call_3"} {
		calls[id], wakes[id] = b.submit(id, `{}`)
		<-begun
	}
	must.Do(t, os.Rename(file, away))
	close(end)
	for id, w := range calls {
		firsts[id] = final(t, w, wakes[id])
	}
	must.Do(t, os.Rename(away, file))
	halt(t, b)
	next := l.next(t, policy.Allow, nil)
	for id, first := range firsts {
		again := next.call(t, id, `{}`)
		if again.Return == nil || again.Return.ID != first.Return.ID || again.Return.Result != "probed" {
			t.Errorf("%s: got %+v, want a replay of %+v", id, again.Return, first.Return)
		}
	}
}

// Who asked while the return was not recorded yet gets it, by whatever way it is recorded meanwhile.
func TestAReturnThatIsRecordedMeanwhileIsFound(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Allow, &probe{})
	var running journal.Record
	b.tool.run = func(context.Context, tools.IO) tools.Result {
		running = must.Get(b.journal.FindAny(t.Context(), "call_1"))(t)
		return tools.Result{Text: "probed"}
	}
	ret := b.call(t, "call_1", `{}`).Return
	for range 2 {
		if got := b.returnOf(running); got == nil || got.ID != ret.ID {
			t.Errorf("got %+v, want %+v", got, ret)
		}
		b.keepUnsaved(running.Key, unsaved{})
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
		must.Do(t, os.Remove(path))
	}
	wantError(t, b.call(t, "call_1", `{}`), message.InternalError, "Restart toold")
	if n := b.tool.ran.Load(); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
}
