package dispatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/tools"
)

// Widens says what its test wants.
func (p *probe) EscalationLimits(b escalation.Limits) escalation.Limits {
	if !p.confined {
		return escalation.Limits{}
	}
	return b
}

// widening is a bench whose calls are asked for and may be widened, and its approver.
func widening(t *testing.T, tool *probe) (*bench, hesitant) {
	t.Helper()
	b, h := newBench(t, policy.Ask, tool), newHesitant()
	b.workspace.opt.Profile = sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: "/nowhere"}
	b.workspace.opt.Escalation = escalation.Limits{Network: escalation.Full, Ports: []uint16{443}}
	t.Cleanup(b.approvals.Join(h))
	return b, h
}

// yes is an answer that widens the network.
func yes(network string) approval.Verdict {
	return approval.Verdict{Approve: true, By: "ada", Escalation: approval.Escalation{Network: network}}
}

func TestAYesWidensItsOwnCallAlone(t *testing.T) {
	t.Parallel()
	var got []escalation.Words
	var before journal.Record
	var b *bench
	b, h := widening(t, &probe{confined: true, run: func(_ context.Context, io tools.IO) tools.Result {
		got = append(got, io.Escalation.Words())
		if before.ID == "" {
			before, _ = b.journal.FindAs(context.Background(), "agent", "", "call_1")
		}
		return tools.Result{Text: "probed", Sandbox: &sandbox.Report{Profile: "workspace-write"}}
	}})
	w, wake, question := b.ask(h, "call_1")
	must.Match(t, &message.MayWiden{Network: []string{"proxy", "full"}, Host: []string{"*"}}, question.Show.MayWiden)
	b.resolve(t, question.ID, yes("full"))
	ret := final(t, w, wake).Return
	full := &message.Widening{Network: "full"}
	must.Match(t, full, ret.Sandbox.Widened)
	if d := ret.Decision; d.By != "person" || d.Person != "ada" || !cmp.Equal(full, d.Widened) {
		t.Errorf("the decision is %+v", d)
	}
	if !strings.HasPrefix(ret.Result, "A person has widened the sandbox of this one call: it may contact every host") || !strings.HasSuffix(ret.Result, "\nprobed") {
		t.Errorf("the result is %q", ret.Result)
	}
	// Who has added what is on the disk before the call runs.
	if d := before.Decision; d.Person != "ada" || d.Widened != `{"network":"full"}` || before.IntendedAt.IsZero() {
		t.Errorf("when it ran the journal had %+v", before)
	}
	if v := <-h.resolved; v.Escalation.Network != "full" {
		t.Errorf("the approver was told %+v", v)
	}

	w, wake, question = b.ask(h, "call_2")
	b.resolve(t, question.ID, approval.Verdict{Approve: true, By: "ada"})
	if ret := final(t, w, wake).Return; ret.Sandbox.Widened != nil || ret.Decision.Widened != nil || ret.Result != "probed" {
		t.Errorf("the next call got %+v", ret)
	}
	must.Match(t, []escalation.Words{{Network: "full"}, {}}, got)
}

func TestAnAnswerThatAddsTooMuchDoesNotCount(t *testing.T) {
	t.Parallel()
	b, h := widening(t, &probe{confined: true})
	w, wake, question := b.ask(h, "call_1")
	for _, v := range []approval.Verdict{
		{Approve: true, Escalation: approval.Escalation{Profile: "danger-full-access"}},
		{Approve: true, Escalation: approval.Escalation{Write: "/nowhere"}},
		{Approve: true, Escalation: approval.Escalation{Network: "all"}},
		{Approve: false, Escalation: approval.Escalation{Network: "full"}},
	} {
		if err := b.approvals.Resolve(question.ID, v); err == nil || errors.Is(err, approval.ErrNotPending) {
			t.Errorf("%+v: got %v", v, err)
		}
	}
	if n := b.tool.ran.Load(); n != 0 || len(b.approvals.Pending()) != 1 {
		t.Fatalf("it ran %d times, %d wait", n, len(b.approvals.Pending()))
	}
	// The answer that counts first decides, whatever a later one would add.
	for i, v := range []approval.Verdict{{Approve: true, By: "bob"}, yes("full")} {
		if err := b.approvals.Resolve(question.ID, v); errors.Is(err, approval.ErrNotPending) != (i == 1) {
			t.Errorf("answer %d: %v", i+1, err)
		}
	}
	if d := final(t, w, wake).Return.Decision; d.Person != "bob" || d.Widened != nil {
		t.Errorf("the decision is %+v", d)
	}
}

func TestOnlyWhatHasAMeaningForACallIsAdded(t *testing.T) {
	t.Parallel()
	b, h := widening(t, &probe{})
	w, wake, question := b.ask(h, "call_1")
	if question.Show.MayWiden != nil {
		t.Errorf("offered is %+v", question.Show.MayWiden)
	}
	if err := b.approvals.Resolve(question.ID, yes("full")); err == nil || errors.Is(err, approval.ErrNotPending) {
		t.Errorf("got %v", err)
	}
	b.resolve(t, question.ID, approval.Verdict{By: "ada"})
	wantError(t, final(t, w, wake), message.Denied, "denied by a person (ada)")
}

// A client that was away finds what it would have got, and nothing runs again.
func TestARepeatOfAWidenedCallGetsItsOneReturn(t *testing.T) {
	t.Parallel()
	b, h := widening(t, &probe{confined: true})
	first, _, question := b.ask(h, "call_1")
	first.Detach()
	w, wake := b.submit("call_1", `{}`)
	b.resolve(t, question.ID, yes("proxy"))
	ret := final(t, w, wake).Return
	again := b.call(t, "call_1", `{}`).Return
	if !again.Replayed || again.ID != ret.ID || again.Decision.Widened == nil || again.Decision.Widened.Network != "proxy" || again.Decision.Person != "ada" {
		t.Errorf("the repeat got %+v", again)
	}
	if n := b.tool.ran.Load(); n != 1 || len(h.asked) != 0 {
		t.Errorf("it ran %d times, was asked about %d times more", n, len(h.asked))
	}
}

// The background call is the one that runs: it has what was added, and nobody else.
func TestTheBackgroundCallHasWhatWasAdded(t *testing.T) {
	t.Parallel()
	tool := serving()
	tool.confined = true
	b, h := widening(t, tool)
	got := make(chan escalation.Words, 1)
	serve := tool.run
	tool.run = func(ctx context.Context, io tools.IO) tools.Result {
		got <- io.Escalation.Words()
		return serve(ctx, io)
	}
	w, wake, question := b.ask(h, "call_1")
	b.resolve(t, question.ID, yes("full"))
	f := final(t, w, wake)
	if f.Background == nil || f.Return.Decision.Widened == nil {
		t.Fatalf("got %+v", f.Return)
	}
	if words := <-got; words.Network != "full" {
		t.Errorf("it runs with %+v", words)
	}
	rec, err := b.journal.FindAs(t.Context(), "agent", "", f.Background.ID)
	if err != nil || rec.Decision.Person != "ada" || rec.Decision.Widened != `{"network":"full"}` {
		t.Errorf("the journal has %+v, %v", rec, err)
	}
	must.Do(t, b.Shutdown(t.Context()))
}

// A yes that cannot be kept any more lets nothing run.
func TestNothingRunsWhenWhatWasAddedHasGone(t *testing.T) {
	t.Parallel()
	b, _ := widening(t, &probe{confined: true})
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	gone := filepath.Join(base, "gone")
	b.workspace.opt.Escalation.Write = []string{base}
	c, _ := b.newCall(Submission{Client: "agent", Request: &message.Request{}, Call: message.ToolCall{ID: "call_1", Name: "probe"}})
	c.workspace = b.workspace
	c.rec = 1 // its events may be told
	q := question{call: c, inv: b.tool, effects: b.tool.Effects(), rules: b.rulesFor(c), said: &message.Decision{}}
	said, refused := b.approved(q, approval.Verdict{Approve: true, By: "ada", Escalation: approval.Escalation{Write: gone}})
	if refused == nil || refused.kind != message.SandboxUnavailable || said.Action != "deny" || said.Widened != nil || c.escalation != nil {
		t.Errorf("got %+v, %+v", said, refused)
	}
	must.Do(t, os.Mkdir(gone, 0o700))
	said, refused = b.approved(q, approval.Verdict{Approve: true, By: "ada", Escalation: approval.Escalation{Write: gone}})
	defer c.escalation.Close()
	if refused != nil || said.Action != "allow" || said.Widened == nil || said.Widened.Write != gone {
		t.Errorf("got %+v, %+v", said, refused)
	}
}

func TestAHostThatAPersonHasAddedIsReachedAndNoOther(t *testing.T) {
	t.Parallel()
	b, answers := connecting(t, "listed.example", "new.example", "x.bad.example", "a.good.example", "listed.example", "other.example", "ask.example")
	b.tool.confined = true
	b.workspace.opt.Profile = sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: "/nowhere"}
	b.workspace.opt.Escalation = escalation.Limits{Hosts: []string{"*.example"}, Ports: []uint16{80, 443}}
	h := newHesitant()
	defer b.approvals.Join(h)()
	b.tool.does = policy.Effect{Kind: policy.Net, Host: "unheard.example", Port: 443, Scheme: "https"}
	w, wake, question := b.ask(h, "c1")
	b.resolve(t, question.ID, approval.Verdict{Approve: true, By: "ada", Escalation: approval.Escalation{Host: "new.example"}})
	final(t, w, wake)
	want := []string{
		"new.example allow person defaults.net", "x.bad.example deny policy bad", "a.good.example deny policy sandbox.network",
		"listed.example deny policy sandbox.network", "other.example deny policy sandbox.network", "ask.example deny policy sandbox.network",
	}
	must.Match(t, want, decisions(w.Call()))
	if answers["new.example"] != "" || !strings.Contains(answers["other.example"], "opened it for new.example alone, in this call. No rule opens it further") {
		t.Errorf("got %q", answers)
	}
	if strings.Contains(answers["x.bad.example"]+answers["other.example"], "would change") {
		t.Errorf("the advice is about a rule: %q", answers)
	}
	if len(h.asked) != 0 {
		t.Error("a person was asked about a host")
	}
}

func TestAQuestionAboutAHostIsYesOrNo(t *testing.T) {
	t.Parallel()
	b, answers := connecting(t, "", "new.example")
	b.tool.confined = true
	b.workspace.opt.Escalation = escalation.Limits{Mode: sandbox.FullAccess, Network: escalation.Full, Ports: []uint16{443}}
	h := newHesitant()
	defer b.approvals.Join(h)()
	w, wake, question := b.ask(h, "c1")
	if question.Show.MayWiden != nil {
		t.Errorf("offered is %+v", question.Show.MayWiden)
	}
	if err := b.approvals.Resolve(question.ID, yes("full")); err == nil || !strings.Contains(err.Error(), "yes or no") {
		t.Errorf("got %v", err)
	}
	b.resolve(t, question.ID, approval.Verdict{Approve: true, By: "ada"})
	final(t, w, wake)
	if answers["new.example"] != "" {
		t.Errorf("got %q", answers)
	}
}
