package dispatch

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

func TestACallThatOnlyReadsIsJournalledBeforeItsReturn(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{reads: true})
	f := b.call(t, "call_1", `{}`)
	rec, err := b.journal.FindAny(t.Context(), "call_1")
	if err != nil || rec.State != journal.Returned || rec.IntendedAt.IsZero() || rec.Decision.Action != "allow" || f.Return.Result != "probed" {
		t.Errorf("journal has %+v, %v; the return is %+v", rec, err, f.Return)
	}
	if again := b.call(t, "call_1", `{}`); again.Return == nil || !again.Return.Replayed || again.Return.ID != f.Return.ID {
		t.Errorf("the repeat got %+v", again)
	}
	if other := b.call(t, "call_1", `{"a": 1}`); other.Err == nil || other.Err.Type != message.DuplicateToolCall {
		t.Errorf("the same id with other arguments got %+v", other)
	}
}

func TestNothingIsToldOfAReadThatCannotBeJournalled(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{reads: true, run: func(context.Context, tools.IO) tools.Result {
		return tools.Result{Text: "what was read"}
	}})
	b.journal.Close()
	w, wake := b.submit("call_1", `{}`)
	f := final(t, w, wake)
	wantError(t, f, message.InternalError, "cannot journal")
	if text, err := json.Marshal(f.Return); err != nil || strings.Contains(string(text), "what was read") {
		t.Errorf("the return is %s, %v", text, err)
	}
	if n := len(w.Call().Events(0)); n != 1 {
		t.Errorf("%d events were told, want the return only", n)
	}
}

func TestTheRepeatOfAnEndedCallIsToldItsReturnOnly(t *testing.T) {
	b := newBench(t, policy.Deny, &probe{})
	for _, want := range []int{2, 1} { // the decision and the return, then the return
		w, wake := b.submit("call_1", `{}`)
		wantError(t, final(t, w, wake), message.Denied, "denied by rule")
		if n := len(w.Call().Events(0)); n != want {
			t.Errorf("%d events were told, want %d", n, want)
		}
	}
}

// Prepare and Drop say that they were called.
func (p *probe) Prepare(context.Context, tools.IO) {
	if p.note("prepared"); p.prepare != nil {
		p.prepare()
	}
}
func (p *probe) Drop() { p.note("dropped") }

// note keeps a step for a test of one call, which has made room for it.
func (p *probe) note(step string) {
	if p.steps != nil {
		p.steps = append(p.steps, step)
	}
}

func TestACallIsPreparedBeforeItsIntentIsDurableAndRunsAfter(t *testing.T) {
	tool := &probe{steps: []string{}}
	b := newBench(t, policy.Allow, tool)
	tool.run = func(context.Context, tools.IO) tools.Result {
		tool.note("ran")
		if rec, err := b.journal.FindAny(t.Context(), "call_1"); err != nil || rec.IntendedAt.IsZero() {
			t.Errorf("it runs while the journal has %+v, %v", rec, err)
		}
		return tools.Result{}
	}
	b.call(t, "call_1", `{}`)
	must.Match(t, []string{"prepared", "ran", "dropped"}, tool.steps)
}

func TestWhatWasPreparedIsDroppedWhenTheIntentCannotBeJournalled(t *testing.T) {
	tool := &probe{steps: []string{}}
	b := newBench(t, policy.Allow, tool)
	b.journal.Close()
	wantError(t, b.call(t, "call_1", `{}`), message.InternalError, "nothing ran")
	if diff := cmp.Diff([]string{"prepared", "dropped"}, tool.steps); diff != "" || tool.ran.Load() != 0 {
		t.Errorf("it ran %d times; %s", tool.ran.Load(), diff)
	}
}

func TestACallIsPreparedWhileItsIntentIsWritten(t *testing.T) {
	tool := &probe{steps: []string{}}
	b := newBench(t, policy.Allow, tool)
	tool.prepare = func() { // waits for what comes beside it
		for t.Context().Err() == nil {
			if rec, err := b.journal.FindAny(t.Context(), "call_1"); err == nil && !rec.IntendedAt.IsZero() {
				tool.note("intended")
				return
			}
		}
	}
	b.call(t, "call_1", `{}`)
	if diff := cmp.Diff([]string{"prepared", "intended", "dropped"}, tool.steps); diff != "" || tool.ran.Load() != 1 {
		t.Errorf("it ran %d times; %s", tool.ran.Load(), diff)
	}
}

func TestAPanicWhileACallIsPreparedIsItsErrorAlone(t *testing.T) {
	tool := &probe{steps: []string{}, prepare: func() { panic("a fault") }}
	b := newBench(t, policy.Allow, tool)
	wantError(t, b.call(t, "call_1", `{}`), message.InternalError, "a fault in toold")
	if diff := cmp.Diff([]string{"prepared", "dropped"}, tool.steps); diff != "" || tool.ran.Load() != 0 {
		t.Errorf("it ran %d times; %s", tool.ran.Load(), diff)
	}
	tool.prepare = nil
	if ret := b.call(t, "call_2", `{}`).Return; ret.Status != "success" {
		t.Errorf("the next call returned %+v", ret)
	}
}

func TestALongCallIsRecordedBeforeItIsAnalysed(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	for range cap(b.builds) { // nothing is analysed
		b.builds <- struct{}{}
	}
	w, wake := b.submit("call_1", `{"text": "`+strings.Repeat("x", longArguments)+`"}`)
	for {
		rec, err := b.journal.FindAny(t.Context(), "call_1")
		if err == nil {
			if rec.State != journal.Received {
				t.Errorf("the call is %s", rec.State)
			}
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	w.Call().Cancel("")
	final(t, w, wake)
}
