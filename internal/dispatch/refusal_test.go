package dispatch

import (
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

func TestARefusalSaysEverythingOnce(t *testing.T) {
	t.Parallel()
	p := must.Get(policy.Compile(policy.Options{Workspace: "/w"}, policy.File{Name: "p.yaml", Defaults: policy.Defaults{Bash: policy.Ask}, Commands: []policy.Rule{
		{ID: "push", Line: 7, Run: []string{"git push **"}, Reason: "releases are made by people"},
	}}))(t)
	argv := []policy.Word{{Text: "git"}, {Text: "push"}}
	for source, want := range map[string]string{
		"git push":         "denied by rule push (p.yaml:7). It must not run `git push`: releases are made by people. Do not try another spelling: ask the user to do it, or leave it out.",
		"(g=git; $g push)": "denied by rule push (p.yaml:7). It must not run `git push`: releases are made by people. Do not try another spelling: ask the user to do it, or leave it out. The part at fault: (g=git; $g push).",
	} {
		r := deniedByPolicy(p.Decide([]policy.Effect{{Kind: policy.Exec, Argv: argv, Source: source}}))
		if r.text != want {
			t.Errorf("got  %s\nwant %s", r.text, want)
		}
	}
}

// A client that sends more than may wait is held up until each refusal is recorded: nothing piles up meanwhile.
func TestCallsThatAreTooManyDoNotPileUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Allow, &probe{})
	b.mu.Lock()
	b.held = maxHeld
	b.mu.Unlock()
	for _, id := range []string{"call_1", "call_2", "call_3"} {
		w, _ := b.submit(id, `{}`)
		events := w.Call().Events(0)
		if len(events) == 0 {
			t.Fatalf("%s is not answered when it is submitted", id)
		}
		last, _ := events[len(events)-1].(Final)
		wantError(t, last, message.TooManyCalls, "256 MiB")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held != maxHeld {
		t.Errorf("%d bytes are held, want %d", b.held, maxHeld)
	}
}

// A script of 64 KiB may have effects that take 30 times its size, for as long as it waits for a person.
func TestWhatACallKeepsIsCountedWithItsEffects(t *testing.T) {
	t.Parallel()
	for held, tooMany := range map[int64]bool{maxHeld - 2*1024 - 3*effectBytes: false, maxHeld - 2*1024 - 3*effectBytes + 1: true, maxHeld - 2*1024 + 1: true} {
		b := newBench(t, policy.Allow, &probe{before: make([]policy.Effect, 2)})
		b.mu.Lock()
		b.held = held
		b.mu.Unlock()
		w, woken := b.submit("call_1", `{"x":"`+strings.Repeat("x", 1024-len(`{"x":""}`))+`"}`)
		last := final(t, w, woken)
		if refused := last.Return != nil && last.Return.ErrorType != nil && *last.Return.ErrorType == message.TooManyCalls; refused != tooMany {
			t.Errorf("beside %d bytes it was answered by %+v", held, last.Return)
		}
		b.mu.Lock()
		if b.held != held {
			t.Errorf("%d bytes are held afterwards, want %d", b.held, held)
		}
		b.mu.Unlock()
	}
}
