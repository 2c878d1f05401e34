package dispatch

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// crowdedBench is a bench whose only slot is taken until free is called.
func crowdedBench(t *testing.T, action policy.Action, tool *probe) (b *bench, free func()) {
	b = newBench(t, action, tool)
	b.slots = newQueue(1, 1)
	taken := b.slots.enter("another connection")
	return b, func() { b.slots.leave(taken) }
}

// isQueued waits until a call waits for a slot.
func isQueued(w *Watcher, wake <-chan struct{}) {
	for {
		for _, e := range w.Call().Events(0) {
			if _, is := e.(message.ToolQueued); is {
				return
			}
		}
		<-wake
	}
}

// The calls for which a queued one waits may be those that change it.
func TestWhatChangesWhileAnApprovedCallWaitsForASlotDoesNotRun(t *testing.T) {
	t.Parallel()
	for _, edited := range []string{"", `{"x": 1}`} {
		script := filepath.Join(must.Get(filepath.EvalSymlinks(t.TempDir()))(t), "run.sh")
		must.Do(t, os.WriteFile(script, []byte("good"), 0o600))
		tool := &probe{}
		b, free := crowdedBench(t, policy.Ask, tool)
		h := newHesitant()
		defer b.approvals.Join(h)()
		b.workspace.opt.Root = filepath.Dir(script)
		tool.does = policy.Effect{Kind: policy.Exec, Argv: []policy.Word{{Text: script}}, Dirs: []string{"/"}, Source: "asked"}
		b.SetPolicy(compiled(t, policy.File{Name: "test", Defaults: policy.Defaults{Bash: policy.Ask, Unanalysable: policy.Ask}}))
		w, wake, question := b.ask(h, "call_1")
		b.resolve(t, question.ID, approval.Verdict{Approve: true, By: "ada", Arguments: edited})
		isQueued(w, wake)
		must.Do(t, os.WriteFile(script, []byte("evil"), 0o600))
		free()
		wantError(t, final(t, w, wake), message.Denied, script+" has changed since a person was asked")
		if n := tool.ran.Load(); n != 0 {
			t.Errorf("edited to %q: it ran %d times", edited, n)
		}
	}
}

func TestAQueuedCallFollowsThePolicyOfItsStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before, after policy.Action
		asked         int // how often a person said yes
		by            string
	}{
		"denies":                  {policy.Allow, policy.Deny, 0, ""},
		"asks":                    {policy.Allow, policy.Ask, 1, "person"},
		"denies what was asked":   {policy.Ask, policy.Deny, 1, ""},
		"allows what was asked":   {policy.Ask, policy.Allow, 1, "person"},
		"asks what was asked too": {policy.Ask, policy.Ask, 1, "person"},
	} {
		b, free := crowdedBench(t, tc.before, &probe{})
		asked := willing(t, b)
		w, wake := b.submit("call_1", `{}`)
		isQueued(w, wake)
		b.SetPolicy(readsAre(t, tc.after))
		free()
		f := final(t, w, wake)
		if tc.by == "" {
			wantError(t, f, message.Denied, "denied by rule defaults.read (changed)")
		} else if f.Return.Status != "success" || f.Return.Decision.By != tc.by {
			t.Errorf("%s: got %+v by %+v", name, f.Return, f.Return.Decision)
		}
		if ran := b.tool.ran.Load() == 1; ran != (tc.by != "") || len(*asked) != tc.asked {
			t.Errorf("%s: ran %v, and a person was asked %d times", name, ran, len(*asked))
		}
		b.stop(t)
	}
}

func TestACallWhoseTokenIsRevokedWhileItWaitsDoesNotRun(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		action := map[bool]policy.Action{false: policy.Allow, true: policy.Ask}[asked]
		tool := &probe{}
		b, free := crowdedBench(t, action, tool)
		h := newHesitant()
		defer b.approvals.Join(h)()
		var known atomic.Bool
		known.Store(true)
		b.opt.Known = func(client string) bool { return client != "agent" || known.Load() }
		w, wake := b.submit("call_1", `{}`)
		if asked {
			b.resolve(t, (<-h.asked).ID, approval.Verdict{Approve: true, By: "ada"})
		}
		isQueued(w, wake)
		known.Store(false)
		free()
		wantError(t, final(t, w, wake), message.NotAuthorized, "the token agent was revoked")
		if n := tool.ran.Load(); n != 0 {
			t.Errorf("asked %t: it ran %d times", asked, n)
		}
	}
}
