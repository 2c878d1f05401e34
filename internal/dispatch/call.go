package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

// Final is the last event of a call: its return, or the error_message that says why this request has none.
type Final struct {
	Return     *message.ToolReturn
	Err        *message.Error
	Background *Call // goes on after this return; nil if there is none, or it has ended
	Kept       bool  // there is neither: toold stops, and the next daemon continues the call
}

// A Call is one tool call from request to return. Sessions attach to it and read its events and its output at
// their own pace; it never waits for them.
type Call struct {
	ID      string // tool_call_id, unique per client only
	Dialect message.Dialect

	client  string
	conn    string // owner of its slot; see queue
	program *message.Program
	asker   func() message.Asker
	dir     string           // of the connection; see Submission
	limit   sandbox.Limit    // see Submission
	seen    func(*Call, any) // see Dispatcher.Observe; nil for a call that never runs
	of      *Call            // the call that began this background call
	key     Key
	tool    string // canonical name; as requested if there is no such tool
	listed  bool   // the tool exists
	hash    string // of tool and arguments
	req     *message.Request
	asked   message.ToolCall
	rec     journal.Key // zero until the call is recorded
	born    time.Time
	stop    context.CancelCauseFunc
	linger  time.Duration // negative: unlimited
	input   *inbox
	begun   chan struct{} // closed when its process runs, or the call has ended without one
	ended   chan struct{} // closed when the call has its return

	// Only the call's goroutine uses these.
	workspace      *Workspace             // nil until it is found; see enter
	leave          func()                 // releases workspace; nil if another call does
	profile        string                 // sandbox that the policy requires
	approved       []string               // files that a person approved
	opened         []policy.Effect        // reads and writes that a person approved
	escalation     *escalation.Escalation // what that person added to the sandbox; closed with the call
	pending        []any                  // events to send once the call is recorded
	edited         tools.Invocation       // runs instead of the requested call; nil: none
	elsewhere      bool                   // another program carries it out; see tools.Elsewhere
	cancelledEarly bool                   // cancelled before it was received
	known          *journal.Record        // the call's earlier record
	steps          []Step
	keep           bool            // see Submission
	kept           bool            // its record has what the next daemon needs to continue it
	again          *journal.Record // the record of a call that an earlier daemon kept
	joined         chan struct{}   // of such a call: closed when its client is back
	resumed        chan struct{}   // of such a call: closed when it awaits approval again, or need not
	lost           *refusal        // why the journal cannot record the call

	mu       sync.Mutex
	events   []any // message.PolicyDecision, message.ToolStarted, Final; append-only
	capture  *spool.Capture
	watchers map[*Watcher]struct{}
	viewers  map[*Watcher]struct{} // see View
	leaving  *time.Timer           // runs while there is no watcher
	done     bool
	progress progress
}

type progress struct {
	state     string
	position  int // in the queue
	preview   string
	pid       int
	startedAt time.Time
}

// A Watcher is one session's attachment to a call.
type Watcher struct {
	call *Call
	wake func()
}

// Key identifies a call among those of all clients. Weak generators repeat ids across agents.
type Key struct{ Client, Agent, ID string }

// Key identifies the call; see Rejoin.
func (c *Call) Key() Key { return c.key }

// Client returns the origin of the call, without what its arguments say.
func (c *Call) Client() message.Asker {
	return message.Asker{Client: c.client, Program: c.program, AgentID: c.req.AgentID, ConversationID: c.req.ConversationID}
}

// MemoryBytes returns roughly how much memory an ended call uses.
func (c *Call) MemoryBytes() int {
	n := len(c.asked.Arguments)
	for _, e := range c.Events(0) {
		if final, ok := e.(Final); ok && final.Return != nil {
			n += 3 * len(final.Return.Result)
		}
	}
	if capture := c.Capture(); capture != nil {
		const most = 128 << 10 // the head and the tail of a stream
		stdout, stderr, _ := capture.Totals()
		n += int(min(stdout, most) + min(stderr, most) + min(stdout+stderr, most))
	}
	return n
}

// ToolName returns the tool as requested.
func (c *Call) ToolName() string { return c.asked.Name }

// Answer returns the message that answers the call in its dialect, nil if that is the return itself.
func (c *Call) Answer(r message.ToolReturn) any {
	req := *c.req
	req.Item = ""
	return req.Answer(r)
}

// BackgroundOf returns the call that began this background call; nil for others.
func (c *Call) BackgroundOf() *Call { return c.of }

// Watch adds a watcher. wake is called, without blocking, whenever there may be something new to read, and at
// once if there is something already.
func (c *Call) Watch(wake func()) *Watcher {
	w := &Watcher{call: c, wake: wake}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving != nil {
		c.leaving.Stop()
		c.leaving = nil
	}
	c.watchers[w] = struct{}{}
	c.rejoined()
	if c.hasNews() {
		wake()
	}
	return w
}

// View adds a watcher that does not keep the call alive: the call's linger time runs while no other watches.
// wake is as for Watch.
func (c *Call) View(wake func()) *Watcher {
	w := &Watcher{call: c, wake: wake}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.viewers == nil {
		c.viewers = map[*Watcher]struct{}{}
	}
	c.viewers[w] = struct{}{}
	return w
}

// HasNews reports whether there is something to read from the beginning.
func (c *Call) HasNews() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasNews()
}

// hasNews is HasNews with mu held.
func (c *Call) hasNews() bool { return len(c.events) > 0 || c.capture != nil }

// Call returns the watched call.
func (w *Watcher) Call() *Call { return w.call }

// Detach ends the attachment. A call without watchers is cancelled after its linger time. Detach may be
// called twice.
func (w *Watcher) Detach() {
	c := w.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, views := c.viewers[w]; views {
		delete(c.viewers, w)
		return
	}
	delete(c.watchers, w)
	if len(c.watchers) == 0 && !c.done && c.leaving == nil && c.linger >= 0 {
		c.leaving = time.AfterFunc(c.linger, func() { c.stop(errClientGone) })
	}
}

// Events returns the events from index from on. The slice must not be changed.
func (c *Call) Events(from int) []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[from:len(c.events):len(c.events)]
}

// Capture returns the call's output, or nil before it runs.
func (c *Call) Capture() *spool.Capture {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.capture
}

// Cancel stops the call. The reason may be empty; the return repeats it.
// Cancelling twice, or too late, is harmless.
func (c *Call) Cancel(reason string) {
	c.stop(cancelled{shortened(reason, 500)})
}

// notify emits an event once the call is recorded: a duplicate receives only the recorded return.
func (c *Call) notify(event any) {
	if c.rec == 0 {
		c.pending = append(c.pending, event)
		return
	}
	c.emit(event)
}

func (c *Call) emit(event any) {
	c.mu.Lock()
	c.events = append(c.events, event)
	switch event.(type) {
	case message.ToolStarted:
		closeOnce(c.begun) // its waiters find the event
	case Final:
		closeOnce(c.ended)
		c.done = true
		if c.leaving != nil {
			c.leaving.Stop()
		}
		closeOnce(c.begun)
	}
	c.mu.Unlock()
	if c.seen != nil {
		c.seen(c, event)
	}
	c.wakeAll()
}

// closeOnce closes a channel that may be closed already, for one goroutine at a time.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// proceed records the call's progress. change must not block.
func (c *Call) proceed(state string, change func(*progress)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress.state = state
	if change != nil {
		change(&c.progress)
	}
}

// wakeAll wakes the watchers. Wake functions are leaves: they never block or call back.
func (c *Call) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.watchers {
		w.wake()
	}
	for w := range c.viewers {
		w.wake()
	}
}

func (c *Call) setCapture(capture *spool.Capture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.capture = capture
}

func notRunning(id string) *message.Error {
	return about(id, message.NotRunning.Errorf("tool call %q is not running", id))
}

func about(id string, e *message.Error) *message.Error {
	e.CallID = id
	return e
}
