package dispatch

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
)

// readsAre is a policy that gives every read the action.
func readsAre(t *testing.T, action policy.Action) *policy.Policy {
	t.Helper()
	return compiled(t, policy.File{Name: "changed", Defaults: policy.Defaults{Read: action, Unanalysable: policy.Ask}})
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

func TestAWaitingCallIsSettledByTheNewPolicy(t *testing.T) {
	t.Parallel()
	for action, status := range map[policy.Action]string{policy.Allow: "success", policy.Deny: "error"} {
		b, h := newBench(t, policy.Ask, &probe{}), newHesitant()
		defer b.approvals.Join(h)()
		w, wake, _ := b.ask(h, "call_1")
		b.SetPolicy(readsAre(t, action))
		r := final(t, w, wake).Return
		if d := r.Decision; r.Status != status || d.Action != action.String() || d.By != "policy" || d.Source != "changed" {
			t.Errorf("%v: got %+v, decision %+v", action, r, d)
		}
		if denied := r.ErrorType != nil && *r.ErrorType == message.Denied; denied != (action == policy.Deny) {
			t.Errorf("%v: the error type is %v", action, r.ErrorType)
		}
		if denied := strings.Contains(r.Result, "denied by rule defaults.read (changed)"); denied != (action == policy.Deny) || denied != (b.tool.ran.Load() == 0) {
			t.Errorf("%v: it ran %d times: %s", action, b.tool.ran.Load(), r.Result)
		}
		if v := <-h.resolved; v.Approve != (action == policy.Allow) || v.By != "policy" {
			t.Errorf("%v: the approver was told %+v", action, v)
		}
	}
}

func TestAQuestionStaysWhileTheNewPolicyAsksToo(t *testing.T) {
	t.Parallel()
	b, h := newBench(t, policy.Ask, &probe{}), newHesitant()
	defer b.approvals.Join(h)()
	w, wake, question := b.ask(h, "call_1")
	for range 3 {
		b.SetPolicy(readsAre(t, policy.Ask))
	}
	b.resolve(t, question.ID, approval.Verdict{Approve: true, By: "ada"})
	if f := final(t, w, wake); f.Return.Status != "success" || f.Return.Decision.By != "person" {
		t.Errorf("got %+v", f.Return)
	}
}

func TestAnApprovalDoesNotOutrunAPolicyThatDenies(t *testing.T) {
	t.Parallel()
	b, h := newBench(t, policy.Ask, &probe{}), newHesitant()
	defer b.approvals.Join(h)()
	w, wake, question := b.ask(h, "call_1")
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
	w, wake, question := b.ask(h, "call_1")
	if p := question.Show.Preview; p.Text != "probe the machine" || p.Diff != "what it would do now" || b.tool.previews.Load() != 1 {
		t.Errorf("asked %+v, previewed %d times", p, b.tool.previews.Load())
	}
	b.resolve(t, question.ID, approval.Verdict{Approve: true, By: "ada"})
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

// The agent may have made a link, and names that. What the analysis only guessed is not shown as certain.
func TestAPersonSeesWhereAPathLeads(t *testing.T) {
	t.Parallel()
	for want, does := range map[string]policy.Effect{
		"write /nowhere/notes (which is /nowhere/src/main.go)":                                 {Kind: policy.Write, Path: "/nowhere/notes"},
		"may write /nowhere/notes (which is /nowhere/src/main.go) (there is no such file now)": {Kind: policy.Write, Path: "/nowhere/notes", Possible: true},
		"read /dev/null (which is /nowhere/src/main.go)":                                       {Kind: policy.Read, Path: "/dev/null"},
	} {
		b := newBench(t, policy.Ask, &probe{})
		defer b.stop(t)
		b.SetPolicy(compiled(t, policy.File{Name: "writes", Paths: []policy.Rule{{ID: "all", Action: policy.Ask, Paths: []string{"/nowhere/**"}}}}))
		asked := willing(t, b)
		b.tool.does, b.tool.does.Canonical = does, "/nowhere/src/main.go"
		b.call(t, "call_1", `{}`)
		if len(*asked) != 1 || len((*asked)[0].Effects) != 1 || (*asked)[0].Effects[0].Text != want {
			t.Errorf("asked is %+v, want %s", *asked, want)
		}
	}
}

// A list of effects is cut where it is shown, so that a long script could hide what matters behind what does not.
func TestWhatNeedsAnAnswerIsShownBeforeWhatDoesNot(t *testing.T) {
	t.Parallel()
	tool := &probe{}
	for n := range 60 {
		path := fmt.Sprintf("/nowhere/f%d", n)
		tool.before = append(tool.before, policy.Effect{Kind: policy.Write, Path: path, Canonical: path})
	}
	b, h := newBench(t, policy.Ask, tool), newHesitant()
	defer b.approvals.Join(h)()
	b.SetPolicy(compiled(t, policy.File{Name: "test", Defaults: policy.Defaults{Read: policy.Ask, Write: policy.Allow, Unanalysable: policy.Ask}}))
	w, wake, r := b.ask(h, "call_1")
	if text := describe.Question(r.Show, ""); !strings.Contains(text, "read /nowhere/x") {
		t.Errorf("the person is shown:\n%s", text)
	}
	b.resolve(t, r.ID, approval.Verdict{})
	final(t, w, wake)
}

// The sandbox of calls does not hold one that another program carries out.
func TestWhatAnotherProgramCarriesOutIsExplainedAndOfferedAsUnconfined(t *testing.T) {
	t.Parallel()
	b, h := newBench(t, policy.Ask, &probe{elsewhere: true}), newHesitant()
	defer b.approvals.Join(h)()
	b.workspace.opt.Profile = sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: "/nowhere"}
	b.workspace.opt.Remember = remembering(func([]policy.Change, string, string) error { return nil })
	b.tool.does = policy.Effect{Kind: policy.Exec, Argv: []policy.Word{{Text: "make"}, {Text: "all"}}}
	b.SetPolicy(compiled(t, policy.File{Name: "user", Defaults: policy.Defaults{Bash: policy.Ask, Confined: policy.Allow}}))
	for elsewhere, action := range map[bool]string{false: "allow", true: "ask"} {
		b.tool.elsewhere = elsewhere
		e, refused := b.Explain("agent", "", message.ToolCall{Name: "probe", Arguments: []byte(`{}`)}, true)
		if refused != nil || e.Action != action {
			t.Errorf("elsewhere %v: explained as %q, %v", elsewhere, e.Action, refused)
		}
	}
	b.tool.elsewhere = true
	w, wake, question := b.ask(h, "call_1")
	if !question.Show.Remembers("command") {
		t.Errorf("suggested are %+v", question.Show.Suggestions)
	}
	b.resolve(t, question.ID, approval.Verdict{})
	final(t, w, wake)
}
