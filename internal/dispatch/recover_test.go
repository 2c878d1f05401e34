package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

// lives are daemons that follow one another on a journal.
type lives struct {
	dir   string
	pid   int
	tools []*probe
}

func newLives(t *testing.T) *lives { return &lives{dir: t.TempDir(), pid: 1 << 29} }

// open opens the journal for the next daemon.
func (l *lives) open(t *testing.T) *journal.Journal {
	t.Helper()
	l.pid++
	_, boot, _ := strings.Cut(journal.Self(), " ")
	j := must.Get(journal.Open(t.Context(), l.dir, fmt.Sprint(l.pid, " ", boot)))(t)
	t.Cleanup(func() { j.Close() })
	return j
}

// next starts a daemon, which reads what the last one has left.
func (l *lives) next(t *testing.T, action policy.Action, change func(*Options)) *bench {
	t.Helper()
	tool := &probe{}
	l.tools = append(l.tools, tool)
	b := newBenchOn(t, l.open(t), action, tool)
	b.dir = l.dir
	if change != nil {
		change(&b.opt)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if o, ok := b.opt.Workspaces.(opening); ok { // nothing can be asked
		go func() { <-o.begun; cancel() }()
	}
	must.Do(t, b.Recover(ctx))
	return b
}

func (l *lives) ran() (n int32) {
	for _, tool := range l.tools {
		n += tool.ran.Load()
	}
	return n
}

// kill leaves everything as a SIGKILL would, but for what the journal writes late.
func kill(t *testing.T, b *bench) {
	t.Helper()
	must.Do(t, b.journal.Close())
}

func halt(t *testing.T, b *bench) { b.stop(t); kill(t, b) }

// ends are the ways in which a daemon ends.
func ends() map[string]func(*testing.T, *bench) {
	return map[string]func(*testing.T, *bench){"killed": kill, "stopped": halt}
}

// kept submits a call that outlives the daemon.
func (b *bench) kept(id string) (*Watcher, <-chan struct{}) {
	wake, woken := waker()
	w := b.Submit(Submission{
		Client: "agent", Program: &message.Program{Name: "letta"}, Keep: true,
		Request: &message.Request{Dialect: message.LettaAPI, Origin: message.Origin{AgentID: "agent-7", RunID: "run-1", OTID: "otid-1"}},
		Call:    message.ToolCall{ID: id, Name: "probe", Arguments: json.RawMessage(`{}`)}, Wake: wake,
	})
	return w, woken
}

// asks submits a call that the policy asks about, and returns the question.
func (b *bench) asks(t *testing.T, id string) (message.ApprovalRequest, *Watcher) {
	t.Helper()
	h := newHesitant()
	b.approvals.Join(h)
	w, _ := b.kept(id)
	return (<-h.asked).Show, w
}

func TestCallsOfACrashedDaemonAreAnswered(t *testing.T) {
	l := newLives(t)
	before := l.open(t)
	for _, id := range []string{"received", "intended", "started"} {
		rec, _, err := before.Receive(t.Context(), journal.Call{
			Client: "agent", ID: id, Tool: "probe", ArgsHash: argument.Hash("probe", json.RawMessage(`{}`)),
			MessageType: "approval_request_message", Message: []byte(`{}`),
		})
		if err == nil && id != "received" {
			err = before.Intend(rec.Key, journal.Decision{Action: "allow"})
		}
		if err == nil && id == "started" {
			err = before.Start(rec.Key, "1 2 3", "")
		}
		must.Do(t, err)
	}
	before.Close()

	b := l.next(t, policy.Allow, nil)
	if len(b.killed) != 1 || b.killed[0] != "1 2 3" {
		t.Errorf("killed %q, want the process of the started call", b.killed)
	}
	for id, want := range map[string]message.ErrorType{"received": message.NotStartedAfterCrash, "intended": message.NotStartedAfterCrash, "started": message.UnknownAfterCrash} {
		rec, err := b.journal.FindAny(t.Context(), id)
		if err != nil || rec.ErrorType != string(want) || recordInfo(rec).StartedAt != "" && want == message.NotStartedAfterCrash {
			t.Errorf("%s is answered with %q, %v; want %s", id, rec.ErrorType, err, want)
		}
	}
	wantError(t, b.call(t, "started", `{}`), message.UnknownAfterCrash, "before it recorded how this call ended")
	for _, id := range []string{"received", "intended"} {
		for _, replayed := range []bool{false, true} {
			if f := b.call(t, id, `{}`); f.Return == nil || f.Return.Status != "success" || f.Return.Replayed != replayed {
				t.Errorf("%s, sent again: %+v", id, f)
			}
		}
		page, err := b.journal.List(t.Context(), journal.Query{CallID: id})
		if err != nil || len(page.Messages) != 4 {
			t.Errorf("%s: the log has %d messages (%v), want two requests and two returns", id, len(page.Messages), err)
		}
	}
	if n := b.tool.ran.Load(); n != 2 {
		t.Errorf("the tool ran %d times", n)
	}
}

func TestWhatMayLiveOfACallIsSaidInItsReturn(t *testing.T) {
	l := newLives(t)
	before := l.open(t)
	rec, _, err := before.Begin(t.Context(), journal.Call{
		Client: "agent", ID: "started", Tool: "probe", ArgsHash: argument.Hash("probe", json.RawMessage(`{}`)),
		MessageType: "approval_request_message", Message: []byte(`{}`),
	}, journal.Decision{Action: "allow"})
	if err == nil {
		err = before.Start(rec.Key, "1 2 3", "")
	}
	must.Do(t, err)
	before.Close()
	b := l.next(t, policy.Allow, func(o *Options) {
		o.Kill = func(string) (bool, error) { return false, errors.New("no process may be killed") }
	})
	f := b.call(t, "started", `{}`)
	if wantError(t, f, message.UnknownAfterCrash, "no process may be killed"); strings.Contains(f.Return.Result, "nothing of it runs") {
		t.Errorf("it says %s", f.Return.Result)
	}
}

func TestAWaitingCallIsAskedAgainAfterARestart(t *testing.T) {
	for name, end := range ends() {
		l := newLives(t)
		first := l.next(t, policy.Ask, nil)
		asked, w := first.asks(t, "call_1")
		end(t, first)
		if f := w.Call().Events(0); name == "stopped" && !f[len(f)-1].(Final).Kept {
			t.Errorf("the client was sent %+v", f)
		}

		second := l.next(t, policy.Ask, nil)
		if waiting := second.approvals.Pending(); len(waiting) != 1 || waiting[0].ID != asked.ID {
			t.Errorf("%s: a daemon that has begun asks about %+v", name, waiting)
		}
		h := newHesitant()
		second.approvals.Join(h)
		again := (<-h.asked).Show
		if again.ID != asked.ID || again.Program == nil || again.Program.Name != "letta" || again.AgentID != "agent-7" || again.Rule != asked.Rule {
			t.Errorf("%s: asked again is %+v, first was %+v", name, again, asked)
		}
		was, _ := time.Parse(time.RFC3339Nano, asked.ExpiresAt)
		is, _ := time.Parse(time.RFC3339Nano, again.ExpiresAt)
		if d := is.Sub(was); d.Abs() > 50*time.Millisecond && !is.Before(was) {
			t.Errorf("%s: it expires %v later than before", name, d)
		}
		second.resolve(t, again.ID, approval.Verdict{Approve: true, By: "ada"})
		w, wake := second.kept("call_1")
		f := final(t, w, wake)
		if f.Return == nil || f.Return.Status != "success" || f.Return.Replayed || f.Return.Decision.Person != "ada" || l.ran() != 1 {
			t.Errorf("%s: its client got %+v; it ran %d times", name, f.Return, l.ran())
		}
		page, err := second.journal.List(t.Context(), journal.Query{CallID: "call_1", MessageTypes: []string{"tool_return_message"}})
		if err != nil || len(page.Messages) != 1 || page.Messages[0].RunID != "run-1" {
			t.Errorf("%s: it has %d returns, %v", name, len(page.Messages), err)
		}
	}
}

// A person who read the first question must not answer another one with it.
func TestAQuestionAboutSomethingElseAfterARestartHasAnotherID(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	link := filepath.Join(dir, "link")
	for _, changes := range []bool{false, true} {
		l := newLives(t)
		reading := func(*Options) {
			l.tools[len(l.tools)-1].does = policy.Effect{Kind: policy.Read, Path: link, Canonical: filepath.Join(dir, "a")}
		}
		must.Do(t, os.RemoveAll(link))
		must.Do(t, os.Symlink("a", link))
		first := l.next(t, policy.Ask, reading)
		asked, _ := first.asks(t, "call_1")
		halt(t, first)
		if changes {
			must.Do(t, os.Remove(link))
			must.Do(t, os.Symlink("b", link))
		}
		second := l.next(t, policy.Ask, reading)
		if again := second.approvals.Pending(); len(again) != 1 || (again[0].ID != asked.ID) != changes {
			t.Errorf("changed: %v; first was %s, and now wait %+v", changes, asked.ID, again)
		}
	}
}

func TestWhatWasAskedUnderAnOlderPolicyIsDecidedAgain(t *testing.T) {
	for _, c := range []struct {
		action policy.Action
		ran    int32
		status string
	}{{policy.Allow, 1, "success"}, {policy.Deny, 0, "error"}} {
		l := newLives(t)
		first := l.next(t, policy.Ask, nil)
		first.asks(t, "call_1")
		halt(t, first)
		w, wake := l.next(t, c.action, nil).kept("call_1")
		if f := final(t, w, wake); f.Return == nil || f.Return.Status != c.status || f.Return.Decision.By != "policy" || l.ran() != c.ran {
			t.Errorf("%v: %+v; it ran %d times", c.action, f.Return, l.ran())
		}
	}
}

func TestAQuestionExpiresByTheClockOnTheWall(t *testing.T) {
	l := newLives(t)
	first := l.next(t, policy.Ask, nil)
	first.asks(t, "call_1")
	halt(t, first)
	second := l.next(t, policy.Ask, func(o *Options) { o.Limits.ApprovalTimeout = time.Nanosecond })
	w, wake := second.kept("call_1")
	wantError(t, final(t, w, wake), message.ApprovalTimeout, "no one answered")
}

func TestAKeptCallRunsOnlyForItsClient(t *testing.T) {
	l := newLives(t)
	first := l.next(t, policy.Ask, nil)
	first.asks(t, "call_1")
	halt(t, first)
	second := l.next(t, policy.Allow, func(o *Options) { o.Limits.Linger = time.Nanosecond })
	for _, c := range second.Find("", "call_1") {
		<-c.ended
	}
	w, wake := second.kept("call_1")
	if wantError(t, final(t, w, wake), message.Cancelled, "did not come back"); l.ran() != 0 {
		t.Errorf("it ran %d times", l.ran())
	}
}

func TestAQueuedCallOutlivesTheDaemon(t *testing.T) {
	for name, end := range ends() {
		l := newLives(t)
		first := l.next(t, policy.Allow, nil)
		begun := make(chan struct{}, 4)
		first.tool.run = func(ctx context.Context, io tools.IO) tools.Result {
			begun <- struct{}{}
			return untilStopped(ctx, io)
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			first.kept(id)
			<-begun
		}
		w, wake := first.kept("queued")
		for queued := false; !queued; {
			<-wake
			for _, e := range w.Call().Events(0) {
				_, is := e.(message.ToolQueued)
				queued = queued || is
			}
		}
		end(t, first)
		second := l.next(t, policy.Allow, nil)
		w, wake = second.kept("queued")
		if f := final(t, w, wake); f.Return == nil || f.Return.Status != "success" || second.tool.ran.Load() != 1 {
			t.Errorf("%s: it got %+v, and ran %d times", name, f.Return, second.tool.ran.Load())
		}
		for _, c := range first.Find("", "") {
			c.Cancel("")
		}
	}
}

func TestADaemonForOneCallKeepsNoneAndTakesNone(t *testing.T) {
	single := func(o *Options) { o.Single = true }
	l := newLives(t)
	first := l.next(t, policy.Ask, nil)
	first.asks(t, "call_1")
	kill(t, first)

	second := l.next(t, policy.Ask, single)
	if left := second.Find("", ""); len(left) != 0 {
		t.Errorf("it goes on with %v", left)
	}
	_, w := second.asks(t, "call_2")
	halt(t, second)
	events := w.Call().Events(0)
	if f := events[len(events)-1].(Final); f.Return == nil || *f.Return.ErrorType != message.Shutdown {
		t.Errorf("its own call got %+v", f)
	}

	killed := l.next(t, policy.Ask, single)
	killed.asks(t, "call_3")
	kill(t, killed)

	third := l.next(t, policy.Ask, nil)
	if left := third.Find("", ""); len(left) != 1 || left[0].ID != "call_1" {
		t.Errorf("the next daemon goes on with %d calls", len(left))
	}
	if rec, err := third.journal.FindAny(t.Context(), "call_3"); err != nil || rec.ErrorType != string(message.NotStartedAfterCrash) {
		t.Errorf("call_3 is %+v, %v", rec, err)
	}
	halt(t, third)
}

func TestBackgroundCallsOfAKilledDaemonHaveEnded(t *testing.T) {
	l := newLives(t)
	first := newBenchOn(t, l.open(t), policy.Allow, serving())
	c := first.begin(t, "call_1")
	before := first.opt.Journal
	parent, _, err := before.Begin(t.Context(), journal.Call{Client: "agent", ID: "parent", Tool: "probe", Message: []byte(`{}`)}, journal.Decision{})
	if err == nil {
		_, _, err = before.Begin(t.Context(), journal.Call{Client: "agent", ID: "background-1", BackgroundOf: "parent", Tool: "probe", Message: []byte(`{}`)}, journal.Decision{})
	}
	if err != nil || parent.Key == 0 {
		t.Fatal(err)
	}
	kill(t, first)

	second := l.next(t, policy.Allow, nil)
	for id, want := range map[string]message.ErrorType{
		"call_1": "", c.ID: message.UnknownAfterCrash, "parent": message.NotStartedAfterCrash, "background-1": message.NotStartedAfterCrash,
	} {
		if rec, err := second.journal.FindAny(t.Context(), id); err != nil || rec.ErrorType != string(want) || rec.ReturnedAt.IsZero() {
			t.Errorf("%s: %s, %q, %v", id, rec.State, rec.ErrorType, err)
		}
	}
	var heard []string
	second.Join("agent", func(c *Call) { heard = append(heard, c.ID) })()
	if len(heard) != 2 || heard[0] != c.ID || heard[1] != "background-1" {
		t.Errorf("its client hears of %v", heard)
	}
	list, err := second.List(t.Context(), "agent", "", true)
	if err != nil || len(list) != 4 {
		t.Fatalf("listed are %+v, %v", list, err)
	}
	for _, i := range list {
		if i.State != message.CallEnded {
			t.Errorf("%s is listed as %s", i.CallID, i.State)
		}
	}
}

func TestACallThatMayHaveStartedIsOnRecordBefore(t *testing.T) {
	b := newBench(t, policy.Allow, &probe{})
	var state journal.State
	b.tool.run = func(context.Context, tools.IO) tools.Result {
		rec, err := b.journal.FindAny(t.Context(), "call_1")
		if err != nil || rec.Process != "1 1 x" || rec.SpoolDir == "" {
			t.Errorf("while it runs the journal has %+v, %v", rec, err)
		}
		state = rec.State
		return tools.Result{}
	}
	if b.call(t, "call_1", `{}`); state != journal.Running {
		t.Errorf("it ran as %q", state)
	}
}

// plain is a tool that prepares nothing.
type plain struct{ tools.Invocation }

func (p plain) Definition() tools.Definition { return (&probe{}).Definition() }

func (p plain) Build(json.RawMessage) (tools.Invocation, error) { return p, nil }

func TestWhatCannotBeRecordedAsStartedDoesNotRun(t *testing.T) {
	for name, wrap := range map[string]func(*probe) tools.Tool{
		"prepared": func(p *probe) tools.Tool { return p },
		"plain":    func(p *probe) tools.Tool { return plain{p} },
	} {
		tool := &probe{reads: name == "plain"} // else it announces itself
		b := newBench(t, policy.Allow, tool)
		registry := must.Get(tools.NewRegistry(wrap(tool)))(t)
		inv := must.Get(wrap(tool).Build(json.RawMessage(`{}`)))(t)
		b.opt.Registry = registry
		c, _ := b.newCall(Submission{Client: "agent", Request: &message.Request{}, Call: message.ToolCall{ID: "call_1", Name: "probe", Arguments: json.RawMessage(`{}`)}})
		c.workspace = b.workspace
		rec, _, err := b.journal.Begin(t.Context(), b.journalled(c), journal.Decision{})
		must.Do(t, err)
		c.rec = rec.Key
		if _, err := b.journal.Finish(c.rec, journal.Outcome{}, building(message.ToolReturn{})); err != nil { // so it may not start
			t.Fatal(err)
		}
		out := b.execute(t.Context(), c, inv, outcome{decision: &message.Decision{}})
		if out.result.Failure != tools.Internal || tool.ran.Load() != 0 {
			t.Errorf("%s: it ran %d times: %+v", name, tool.ran.Load(), out.result)
		}
	}
}

// opening is a workspace that takes its time.
type opening struct{ begun chan struct{} }

func (o opening) Use(ctx context.Context, _ string) (*Workspace, func(), error) {
	o.begun <- struct{}{}
	<-ctx.Done()
	return nil, nil, context.Cause(ctx)
}

func TestACallWhoseWorkspaceIsBeingOpenedIsKept(t *testing.T) {
	l := newLives(t)
	first := l.next(t, policy.Ask, nil)
	first.asks(t, "call_1")
	halt(t, first)
	o := opening{make(chan struct{}, 2)}
	second := l.next(t, policy.Allow, func(opt *Options) { opt.Workspaces = o })
	w, wake := second.kept("new")
	<-o.begun
	halt(t, second)
	wantError(t, final(t, w, wake), message.Shutdown, "Send it again")
	w, wake = l.next(t, policy.Allow, nil).kept("call_1")
	if f := final(t, w, wake); f.Return == nil || f.Return.Status != "success" || l.ran() != 1 {
		t.Errorf("it got %+v", f.Return)
	}
}

// TestARepeatGetsTheSameReturnWhileTooldStops: or none, if the next daemon goes on with the call.
func TestARepeatGetsTheSameReturnWhileTooldStops(t *testing.T) {
	l := newLives(t)
	b := l.next(t, policy.Ask, nil)
	leave := b.approvals.Join(decider(b, approval.Verdict{Approve: true, By: "ada"}))
	first := b.call(t, "call_1", `{}`)
	w, woken := b.kept("call_0")
	ended := final(t, w, woken)
	leave()
	b.asks(t, "call_2")
	b.stop(t)
	w, woken = b.kept("call_0")
	if f := final(t, w, woken); f.Return == nil || f.Return.ID != ended.Return.ID {
		t.Errorf("the repeat of a call that was kept and has ended: %+v", f)
	}
	again := b.call(t, "call_1", `{}`)
	if again.Return == nil || !again.Return.Replayed || again.Return.ID != first.Return.ID {
		t.Errorf("the repeat of a call that has ended: %+v, want %+v", again, first.Return)
	}
	if e := b.call(t, "call_1", `{"other":1}`).Err; e == nil || e.Type != message.DuplicateToolCall {
		t.Errorf("the same id with other arguments: %v", e)
	}
	w, woken = b.kept("call_2")
	if f := final(t, w, woken); !f.Kept {
		t.Errorf("the repeat of a call that the next daemon asks about: %+v", f)
	}
	wantError(t, b.call(t, "call_3", `{}`), message.Shutdown, "Send it again with the same id")
}
