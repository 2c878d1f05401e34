package dispatch

import (
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
