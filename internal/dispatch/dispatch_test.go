package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

// probe is a tool whose behaviour its test writes. Its calls run nothing real:
// what is tested here is what happens around a tool.
type probe struct {
	run  func(ctx context.Context, io tools.IO) tools.Result
	ran  atomic.Int32
	does policy.Effect

	background bool
	input      bool
	elsewhere  bool
	reads      bool
	confined   bool
	steps      []string // of its preparation
	prepare    func()   // what that does

	before   []policy.Effect
	previews *atomic.Int32 // of those that can be shown; nil: they cannot
	stuck    chan struct{} // closed when it is shown, which then ends with the call; nil: it is shown at once
}

// shownProbe is a probe that says how often it was shown.
type shownProbe struct{ *probe }

func (p shownProbe) Preview(ctx context.Context) tools.Preview {
	p.previews.Add(1)
	if p.stuck != nil {
		close(p.stuck)
		<-ctx.Done()
	}
	return tools.Preview{Text: p.Text(), Diff: "what it would do now"}
}

func (p *probe) Definition() tools.Definition {
	return tools.Definition{Name: "probe", Description: "for tests", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (p *probe) Build(args json.RawMessage) (tools.Invocation, error) {
	if strings.Contains(string(args), "bad") {
		return nil, &argument.Error{Field: "bad", Problem: "it is bad"}
	}
	if p.previews != nil {
		return shownProbe{p}, nil
	}
	return p, nil
}

// Location is the member cwd.
func (p *probe) Location(args json.RawMessage) (paths []string, runs bool) {
	var a struct{ Cwd string }
	err := json.Unmarshal(args, &a)
	return []string{a.Cwd}, err == nil
}

func (p *probe) Effects() []policy.Effect { return append(slices.Clone(p.before), p.does) }
func (p *probe) Text() string             { return "probe the machine" }

func (p *probe) Traits() tools.Traits {
	return tools.Traits{ReadOnly: p.reads, Background: p.background, Input: p.input, Elsewhere: p.elsewhere}
}

func (p *probe) Execute(ctx context.Context, io tools.IO) tools.Result {
	if !p.reads {
		if err := io.Starting("1 1 x"); err != nil {
			return tools.Result{Text: err.Error(), Failure: tools.Internal}
		}
	}
	p.ran.Add(1)
	if p.run == nil {
		return tools.Result{Text: "probed"}
	}
	return p.run(ctx, io)
}

// bench is a dispatcher with everything real but the tool.
type bench struct {
	*Dispatcher
	workspace *Workspace
	tool      *probe
	journal   *journal.Journal
	approvals *approval.Queue[message.ApprovalRequest]
	logged    *observer.ObservedLogs
	killed    []string
	dir       string // of the journal
}

// only is all workspaces of a test.
type only struct{ *Workspace }

func (o only) Use(context.Context, string) (*Workspace, func(), error) {
	return o.Workspace, func() {}, nil
}

// SetPolicy changes the policy of the workspace.
func (b *bench) SetPolicy(p *policy.Policy) { b.workspace.SetPolicy(p) }

// newBench makes a dispatcher whose policy gives every read the action.
func newBench(t *testing.T, action policy.Action, tool *probe) *bench {
	t.Helper()
	dir := t.TempDir()
	j := must.Get(journal.Open(t.Context(), dir, journal.Self()))(t)
	t.Cleanup(func() { j.Close() })
	b := newBenchOn(t, j, action, tool)
	b.dir = dir
	return b
}

func newBenchOn(t *testing.T, j *journal.Journal, action policy.Action, tool *probe) *bench {
	t.Helper()
	tool.does = policy.Effect{Kind: policy.Read, Path: "/nowhere/x", Canonical: "/nowhere/x"}
	registry := must.Get(tools.NewRegistry(tool))(t)
	rules := compiled(t, policy.File{
		Name: "test", Defaults: policy.Defaults{Read: action, Unanalysable: policy.Ask},
	})
	core, logged := observer.New(zapcore.InfoLevel)
	b := &bench{tool: tool, journal: j, approvals: approval.New[message.ApprovalRequest](), logged: logged}
	b.workspace = NewWorkspace(WorkspaceOptions{Root: "/nowhere", Registry: registry, Policy: rules})
	b.Dispatcher = New(Options{
		Registry: registry, Workspaces: only{b.workspace}, Approvals: b.approvals, Journal: j, Log: zap.New(core), SpoolDir: t.TempDir(),
		Kill:   func(identity string) (bool, error) { b.killed = append(b.killed, identity); return true, nil },
		Limits: Limits{Concurrent: 4, PerConnection: 4, Waiting: 8, Background: 2, BackgroundEach: 2, AskedHosts: 12, ReturnBytes: 30000, SpoolBytes: 1 << 20, Linger: time.Minute, ApprovalTimeout: time.Minute},
		Redact: []string{"s3cret"},
	})
	return b
}

// stop ends the dispatcher, and waits for what calls do after they are answered.
func (b *bench) stop(t *testing.T) {
	t.Helper()
	must.Do(t, b.Shutdown(t.Context()))
}

func compiled(t *testing.T, file policy.File) *policy.Policy {
	t.Helper()
	p := must.Get(policy.Compile(policy.Options{Workspace: "/nowhere", Home: "/home/nobody", Tmp: "/tmp"}, file))(t)
	return p
}

// waker returns a function that never blocks, and what it sends to.
func waker() (func(), <-chan struct{}) {
	wake := make(chan struct{}, 1)
	return func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}, wake
}

// submit starts a call and returns it with its watcher.
func (b *bench) submit(id, args string) (*Watcher, <-chan struct{}) {
	wake, woken := waker()
	w := b.Submit(Submission{
		Client: "agent", Request: &message.Request{Dialect: message.OpenLetta},
		Call: message.ToolCall{ID: id, Name: "probe", Arguments: json.RawMessage(args)}, Wake: wake,
	})
	return w, woken
}

// ask starts a call that the policy asks about, and returns the question to h.
func (b *bench) ask(h hesitant, id string) (*Watcher, <-chan struct{}, approval.Request[message.ApprovalRequest]) {
	w, wake := b.submit(id, `{}`)
	return w, wake, <-h.asked
}

func (b *bench) resolve(t *testing.T, id string, v approval.Verdict) {
	t.Helper()
	must.Do(t, b.approvals.Resolve(id, v))
}

// holding is a tool that reports each run and lasts until end is closed.
func holding() (tool *probe, begun, end chan struct{}) {
	begun, end = make(chan struct{}, 20), make(chan struct{})
	return &probe{run: func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{PID: 42})
		begun <- struct{}{}
		<-end
		return tools.Result{Text: "probed"}
	}}, begun, end
}

// obedient is a tool that reports each run and lasts until it is stopped.
func obedient() (tool *probe, begun chan struct{}) {
	begun = make(chan struct{}, 20)
	return &probe{run: func(ctx context.Context, io tools.IO) tools.Result {
		begun <- struct{}{}
		return untilStopped(ctx, io)
	}}, begun
}

// onAsked is an approver who is called with each question.
type onAsked func(approval.Request[message.ApprovalRequest])

func (f onAsked) Asked(r approval.Request[message.ApprovalRequest])                  { f(r) }
func (onAsked) Resolved(approval.Request[message.ApprovalRequest], approval.Verdict) {}

// decider answers every question with one verdict.
func decider(b *bench, v approval.Verdict) onAsked {
	return func(r approval.Request[message.ApprovalRequest]) { b.approvals.Resolve(r.ID, v) }
}

// final waits for the last event of a call.
func final(t *testing.T, w *Watcher, wake <-chan struct{}) Final {
	t.Helper()
	for {
		for _, e := range w.Call().Events(0) {
			if f, ok := e.(Final); ok {
				return f
			}
		}
		select {
		case <-wake:
		case <-t.Context().Done():
			t.Fatal("the test ended before the call did")
		}
	}
}

func (b *bench) call(t *testing.T, id, args string) Final {
	t.Helper()
	w, wake := b.submit(id, args)
	return final(t, w, wake)
}

func wantError(t *testing.T, f Final, kind message.ErrorType, text string) {
	t.Helper()
	if f.Return == nil || f.Return.ErrorType == nil || *f.Return.ErrorType != kind || f.Return.Status != "error" {
		t.Fatalf("got %+v, want a return with error_type %s", f, kind)
	}
	if !strings.Contains(f.Return.Result, text) {
		t.Errorf("result %q does not say %q", f.Return.Result, text)
	}
}

func TestAnAllowedCallRunsAndIsJournalled(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	f := b.call(t, "call_1", `{}`)
	if f.Return == nil || f.Return.Status != "success" || f.Return.Result != "probed" {
		t.Fatalf("got %+v", f)
	}
	rec, err := b.journal.FindAny(t.Context(), "call_1")
	if err != nil || rec.State != journal.Returned || rec.Decision.Action != "allow" || rec.IntendedAt.IsZero() {
		t.Errorf("journal has %+v, %v", rec, err)
	}
}

func TestARepeatedCallIsAnsweredFromTheJournal(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	first := b.call(t, "call_1", `{"a": 1, "b": 2}`)
	again := b.call(t, "call_1", `{"b":2,"a":1}`)
	if again.Return == nil || !again.Return.Replayed || again.Return.ID != first.Return.ID || again.Return.OTID != first.Return.OTID {
		t.Errorf("got %+v, want a replay of %+v", again.Return, first.Return)
	}
	if n := b.tool.ran.Load(); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
}

func TestTheSameIDWithOtherArgumentsIsRefused(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	b.call(t, "call_1", `{"a": 1}`)
	f := b.call(t, "call_1", `{"a": 2}`)
	if f.Return != nil || f.Err == nil || f.Err.Type != message.DuplicateToolCall {
		t.Errorf("got %+v, want duplicate_tool_call", f)
	}
}

func TestARepeatOfARunningCallAttachesToIt(t *testing.T) {
	tool, begun, end := holding()
	b := newBench(t, policy.Allow, tool)
	w1, wake1 := b.submit("call_1", `{}`)
	<-begun
	w2, wake2 := b.submit("call_1", `{}`)
	if !b.Knows(w1.Call().Key()) || b.Knows(Key{Client: "agent", ID: "call_2"}) {
		t.Error("it is not the one call that is known")
	}
	close(end)
	f1, f2 := final(t, w1, wake1), final(t, w2, wake2)
	if w1.Call() != w2.Call() || f1.Return != f2.Return {
		t.Errorf("the repeat did not attach: %+v and %+v", f1, f2)
	}
}

func TestNothingRunsWhenTheDecisionCannotBeJournalled(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	b.journal.Close()
	wantError(t, b.call(t, "call_1", `{}`), message.InternalError, "nothing ran")
	if n := b.tool.ran.Load(); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
}

func TestRefusalsSayWhatIsWrong(t *testing.T) {
	b := newBench(t, policy.Deny, &probe{})
	wantError(t, b.call(t, "denied", `{}`), message.Denied, "denied by rule")
	wantError(t, b.call(t, "faulty", `{"bad": 1}`), message.InvalidArguments, "it is bad")
	w, wake := b.submit("unknown", `{}`)
	_ = final(t, w, wake)
	notify, woken := waker()
	w = b.Submit(Submission{
		Client: "agent", Request: &message.Request{}, Wake: notify,
		Call: message.ToolCall{ID: "nosuch", Name: "nosuch", Arguments: json.RawMessage(`{}`)},
	})
	wantError(t, final(t, w, woken), message.UnknownTool, "probe")
	if n := b.tool.ran.Load(); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
}

func TestAPanicOfAToolIsOneErroneousReturn(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{run: func(context.Context, tools.IO) tools.Result { panic("boom") }})
	wantError(t, b.call(t, "call_1", `{}`), message.InternalError, "fault")
	b.tool.run = nil
	if f := b.call(t, "call_2", `{}`); f.Return.Status != "success" {
		t.Errorf("after the panic: %+v", f.Return)
	}
}

func TestAskWithoutAnApproverDeniesAtOnce(t *testing.T) {
	b := newBench(t, policy.Ask, &probe{})
	wantError(t, b.call(t, "call_1", `{}`), message.Denied, "no approver is connected. Ask the user to run `toold watch`")
}

func TestAPersonDecides(t *testing.T) {
	b := newBench(t, policy.Ask, &probe{})
	leave := b.approvals.Join(decider(b, approval.Verdict{Approve: true, By: "ada"}))
	f := b.call(t, "call_1", `{}`)
	if f.Return.Status != "success" || f.Return.Decision.By != "person" || f.Return.Decision.Action != "allow" {
		t.Errorf("got %+v, %+v", f.Return, f.Return.Decision)
	}
	leave()
	defer b.approvals.Join(decider(b, approval.Verdict{By: "ada", Reason: "not on Friday"}))()
	wantError(t, b.call(t, "call_2", `{}`), message.Denied, "not on Friday")
	if n := b.tool.ran.Load(); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
}

func untilStopped(ctx context.Context, _ tools.IO) tools.Result {
	<-ctx.Done()
	return tools.Result{IsError: true, Failure: tools.Cancelled}
}

func TestACancelledCallIsAnswered(t *testing.T) {
	tool, begun := obedient()
	b := newBench(t, policy.Allow, tool)
	w, wake := b.submit("call_1", `{}`)
	<-begun
	w.Call().Cancel("not needed")
	w.Call().Cancel("")
	f := final(t, w, wake)
	if f.Return.ErrorType == nil || *f.Return.ErrorType != message.Cancelled || !f.Return.Cancelled {
		t.Errorf("got %+v", f.Return)
	}
}

func TestShutdownAnswersWhatRunsAndWhatComes(t *testing.T) {
	tool, begun := obedient()
	b := newBench(t, policy.Allow, tool)
	w, wake := b.submit("call_1", `{}`)
	<-begun
	must.Do(t, b.Shutdown(t.Context()))
	f := final(t, w, wake)
	if f.Return.ErrorType == nil || *f.Return.ErrorType != message.Shutdown {
		t.Errorf("the running call got %+v", f.Return)
	}
	wantError(t, b.call(t, "call_2", `{}`), message.Shutdown, "takes no call")
}

func TestTooManyCallsAreRefused(t *testing.T) {
	tool, begun, end := holding()
	b := newBench(t, policy.Allow, tool)
	for _, id := range []string{"a", "b", "c", "d"} { // the places
		b.submit(id, `{}`)
		<-begun
	}
	for _, id := range []string{"e", "f", "g", "h", "i", "j", "k", "l"} { // the queue
		b.submit(id, `{}`)
	}
	wantError(t, b.call(t, "m", `{}`), message.TooManyCalls, "8 calls wait already")
	if c, others := b.Find("agent", "c"), b.Find("other", "c"); len(c) != 1 || c[0].ID != "c" || len(others) != 0 {
		t.Errorf("c is found as %v and %v", c, others)
	}
	close(end)
	must.Do(t, b.Shutdown(t.Context()))
}

func TestTheLogHoldsNoArguments(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{run: func(_ context.Context, io tools.IO) tools.Result {
		io.Output(tools.Stdout, []byte("output-content"))
		return tools.Result{}
	}})
	b.call(t, "call_1", `{"x": "argument-content"}`)
	b.stop(t) // a call is logged after it is answered
	if b.logged.Len() == 0 {
		t.Fatal("a finished call is not logged")
	}
	for _, line := range b.logged.All() {
		text := must.Get(json.Marshal(line.ContextMap()))(t)
		for _, secret := range []string{"argument-content", "output-content"} {
			if strings.Contains(line.Message+string(text), secret) {
				t.Errorf("the log holds %q: %s %s", secret, line.Message, text)
			}
		}
	}
}

func TestSecretsLeaveNoCall(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{run: func(_ context.Context, io tools.IO) tools.Result {
		io.Output(tools.Stdout, []byte("it is s3c"))
		io.Output(tools.Stdout, []byte("ret\n"))
		return tools.Result{Diff: "+s3cret"}
	}})
	f := b.call(t, "call_1", `{}`)
	body := must.Get(json.Marshal(f.Return))(t)
	if strings.Contains(string(body), "s3cret") || !strings.Contains(string(body), "[redacted]") {
		t.Errorf("the return is %s", body)
	}
}

// Colours within a secret, and what a terminal erases, do not hide it.
func TestASecretWithinColoursLeavesNoCall(t *testing.T) {
	for _, hidden := range []string{"s3\x1b[1;31mcr\x1b[m\x1b[Ket", "s3crX\bet", "s3\acret"} {
		b := newBench(t, policy.Allow, &probe{run: func(_ context.Context, io tools.IO) tools.Result {
			for _, c := range []byte(hidden + "\n") {
				io.Output(tools.Stdout, []byte{c})
			}
			return tools.Result{}
		}})
		ret := b.call(t, "call_1", `{}`).Return
		out := strings.Join(ret.Stdout, "")
		isColoured := strings.Contains(hidden, "m")
		if ret.Result != "[redacted]\n" || isColoured && out != "[redacted]\n" {
			t.Errorf("%q: result %q, stdout %q", hidden, ret.Result, out)
		}
	}
}

// What a program names its processes and asks hosts for leaves the call like its output.
func TestSecretsLeaveNoCallInNamesOfProcessesAndHosts(t *testing.T) {
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	b := newBench(t, policy.Allow, &probe{run: func(ctx context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{PID: 7, Sandbox: sandbox.Report{Unwatched: "/nowhere/s3cret is not watched"}})
		io.Waiting(tools.Waiting{Waits: true, Kind: "line", Process: executor.Process{PID: 7, Command: "login s3cret " + token}})
		refused := io.Connect(ctx, "s3cret.example.com", []uint16{443})
		var denied *sandbox.Denial
		if !errors.As(refused, &denied) {
			return tools.Result{Text: fmt.Sprint(refused)}
		}
		return tools.Result{
			Text: "it ran", Denials: []sandbox.Denial{*denied}, Leftovers: []executor.Process{{PID: 8, Command: "serve s3cret " + token}},
			Sandbox: &sandbox.Report{Unwatched: "/nowhere/s3cret is not watched"},
		}
	}})
	w, wake := b.submit("call_1", `{}`)
	ret := final(t, w, wake).Return
	told := []any{ret}
	for _, e := range w.Call().Events(0) {
		if _, is := e.(Final); !is {
			told = append(told, e)
		}
	}
	page := must.Get(b.journal.List(t.Context(), journal.Query{}))(t)
	rec := must.Get(b.journal.FindAny(t.Context(), "call_1"))(t)
	told = append(told, page, rec.Sandbox)
	for _, m := range page.Messages {
		told = append(told, json.RawMessage(m.Body))
	}
	if len(ret.Leftovers) != 1 || len(ret.Denials) != 1 {
		t.Errorf("the return is %+v", ret)
	}
	for _, e := range told {
		text := must.Get(json.Marshal(e))(t)
		if strings.Contains(string(text), "s3cret") || strings.Contains(string(text), token) {
			t.Errorf("told is %T %s", e, text)
		}
	}
}

func TestACallWithoutSessionsIsCancelledAfterItsLinger(t *testing.T) {
	begun, stopped := make(chan struct{}), make(chan struct{})
	b := newBench(t, policy.Allow, &probe{run: func(ctx context.Context, io tools.IO) tools.Result {
		close(begun)
		defer close(stopped)
		return untilStopped(ctx, io)
	}})
	b.opt.Limits.Linger = time.Nanosecond
	w, _ := b.submit("call_1", `{}`)
	<-begun
	w.Detach()
	<-stopped
	f := b.call(t, "call_1", `{}`)
	if f.Return.ErrorType == nil || *f.Return.ErrorType != message.Cancelled {
		t.Errorf("got %+v", f.Return)
	}
}
