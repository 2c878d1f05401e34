package dispatch

import (
	"sync/atomic"
	"testing"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// readsAre is a policy that gives every read the action.
func readsAre(t *testing.T, action policy.Action) *policy.Policy {
	t.Helper()
	p, err := policy.Compile(policy.Options{Workspace: "/nowhere", Home: "/home/nobody", Tmp: "/tmp"}, policy.File{
		Name: "changed", Defaults: policy.Defaults{Read: action, Unanalysable: policy.Ask},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// hesitant is an approver who says what they see and answers nothing.
type hesitant struct {
	asked    chan approval.Request[message.ApprovalRequest]
	resolved chan approval.Verdict
}

func newHesitant() hesitant {
	return hesitant{make(chan approval.Request[message.ApprovalRequest], 8), make(chan approval.Verdict, 8)}
}

func (h hesitant) Asked(r approval.Request[message.ApprovalRequest]) { h.asked <- r }
func (h hesitant) Resolved(_ approval.Request[message.ApprovalRequest], v approval.Verdict) {
	h.resolved <- v
}

func TestAWaitingCallRunsWhenTheNewPolicyAllowsIt(t *testing.T) {
	t.Parallel()
	b, h := newBench(t, policy.Ask, &probe{}), newHesitant()
	defer b.approvals.Join(h)()
	w, wake := b.submit("call_1", `{}`)
	<-h.asked
	b.SetPolicy(readsAre(t, policy.Allow))
	f := final(t, w, wake)
	if d := f.Return.Decision; f.Return.Status != "success" || d.Action != "allow" || d.By != "policy" || d.Source != "changed" {
		t.Errorf("got %+v, decision %+v", f.Return, d)
	}
	if v := <-h.resolved; !v.Approve || v.By != "policy" {
		t.Errorf("the approver was told %+v", v)
	}
}

func TestAWaitingCallIsDeniedByTheNewPolicy(t *testing.T) {
	t.Parallel()
	b, h := newBench(t, policy.Ask, &probe{}), newHesitant()
	defer b.approvals.Join(h)()
	w, wake := b.submit("call_1", `{}`)
	<-h.asked
	b.SetPolicy(readsAre(t, policy.Deny))
	f := final(t, w, wake)
	wantError(t, f, message.Denied, "denied by rule defaults.read (changed)")
	if b.tool.ran.Load() != 0 {
		t.Error("the tool ran")
	}
	if v := <-h.resolved; v.Approve || v.By != "policy" {
		t.Errorf("the approver was told %+v", v)
	}
}

func TestAQuestionStaysWhileTheNewPolicyAsksToo(t *testing.T) {
	t.Parallel()
	b, h := newBench(t, policy.Ask, &probe{}), newHesitant()
	defer b.approvals.Join(h)()
	w, wake := b.submit("call_1", `{}`)
	question := <-h.asked
	for range 3 {
		b.SetPolicy(readsAre(t, policy.Ask))
	}
	if _, err := b.approvals.Resolve(question.ID, approval.Verdict{Approve: true, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if f := final(t, w, wake); f.Return.Status != "success" || f.Return.Decision.By != "person" {
		t.Errorf("got %+v", f.Return)
	}
}

func TestAnApprovalDoesNotOutrunAPolicyThatDenies(t *testing.T) {
	t.Parallel()
	b, h := newBench(t, policy.Ask, &probe{}), newHesitant()
	defer b.approvals.Join(h)()
	w, wake := b.submit("call_1", `{}`)
	question := <-h.asked
	b.SetPolicy(readsAre(t, policy.Deny))
	// Whichever comes first, the call does not run.
	b.approvals.Resolve(question.ID, approval.Verdict{Approve: true, By: "ada"})
	wantError(t, final(t, w, wake), message.Denied, "denied by rule defaults.read")
	if b.tool.ran.Load() != 0 {
		t.Error("the tool ran")
	}
}

// What a call would do now binds it, so only a person who decides is shown it.
func TestOnlyACallThatAsksIsPreviewed(t *testing.T) {
	t.Parallel()
	allowed := newBench(t, policy.Allow, &probe{previews: new(atomic.Int32)})
	if f := allowed.call(t, "call_1", `{}`); f.Return.Status != "success" || allowed.tool.previews.Load() != 0 {
		t.Errorf("got %+v, previewed %d times", f.Return, allowed.tool.previews.Load())
	}
	b, h := newBench(t, policy.Ask, &probe{previews: new(atomic.Int32)}), newHesitant()
	defer b.approvals.Join(h)()
	w, wake := b.submit("call_1", `{}`)
	question := <-h.asked
	if p := question.Show.Preview; p.Text != "probe the machine" || p.Diff != "what it would do now" || b.tool.previews.Load() != 1 {
		t.Errorf("asked %+v, previewed %d times", p, b.tool.previews.Load())
	}
	if _, err := b.approvals.Resolve(question.ID, approval.Verdict{Approve: true, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if f := final(t, w, wake); f.Return.Status != "success" {
		t.Errorf("got %+v", f.Return)
	}
}

func TestACallWhosePreviewHangsCanBeCancelled(t *testing.T) {
	t.Parallel()
	b := newBench(t, policy.Ask, &probe{previews: new(atomic.Int32), stuck: make(chan struct{})})
	defer b.approvals.Join(newHesitant())()
	w, wake := b.submit("call_1", `{}`)
	<-b.tool.stuck
	w.Call().Cancel("enough")
	wantError(t, final(t, w, wake), message.Cancelled, "enough")
}
