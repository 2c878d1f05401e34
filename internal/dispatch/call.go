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

// Final is the last event of a call: its return, or the error_message that says why this request has
// none.
type Final struct {
	Return     *message.ToolReturn
	Err        *message.Error
	Background *Call // continues after this return; nil: none does
	Kept       bool  // there is neither: toold stops, and the next daemon continues the call
}

// A Call is one tool call. Sessions read its events and output at their own pace; it never waits
// for them.
type Call struct {
	ID      string // tool_call_id, unique per client only
	Dialect message.Dialect

	client  string
	conn    string // owner of its slot; see queue
	program *message.Program
	asker   func() message.Asker
	dir     string           // of the connection; see Submission
	near    string           // see Submission
	limit   sandbox.Limit    // see Submission
	seen    func(*Call, any) // see Dispatcher.Observe; nil for a call that never runs
	of      *Call            // the call that began this background call; nil for others
	key     Key
	tool    string // canonical name; as requested if there is no such tool
	listed  bool   // the tool exists
	hash    string // of tool and arguments
	req     *message.Request
	parts   int // of its item, with this one; 0: it is no part, or unknown
	asked   message.ToolCall
	rec     journal.Key // zero until the call is recorded
	born    time.Time
	stop    context.CancelCauseFunc
	linger  time.Duration // negative: unlimited
	input   *inbox
	begun   chan struct{} // closed when its process runs, or the call has ended without one
	ended   chan struct{} // closed with its return

	// Once the call lives, only its goroutine changes these.
	workspace   *Workspace             // nil until enter finds it
	leave       func()                 // releases workspace; nil if another call does
	profile     string                 // sandbox that the policy requires
	approved    []string               // files that a person approved
	opened      []policy.Effect        // reads and writes that a person approved
	escalation  *escalation.Escalation // what that person added to the sandbox; closed with the call
	pending     []any                  // events to emit once the call is recorded
	edited      tools.Invocation       // runs instead of the requested call; nil: none
	elsewhere   bool                   // another program carries it out; see tools.Traits
	earlyCancel string                 // the name of its cancel, if it was cancelled before it was received, or ""
	cancel      *cancelled             // set once it has run, if it was cancelled; else nil
	known       *journal.Record        // its earlier record, if the journal had the call already; else nil
	steps       []Step
	keep        bool            // see Submission
	kept        bool            // its record has what the next daemon needs to continue it
	again       *journal.Record // its record, if an earlier daemon kept the call; else nil
	joined      chan struct{}   // of such a call: closed, with mu held, when its client is back
	resumed     chan struct{}   // of such a call: closed when it awaits approval again, or need not
	lost        *refusal        // why the journal cannot record the call; else nil

	mu       sync.Mutex
	events   []any // append-only; a Final is the last
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

// A Watcher is a session's attachment to a call.
type Watcher struct {
	call *Call
	wake func()
}

// Key identifies a call of any client. Weak generators repeat ids across agents.
type Key struct{ Client, Agent, ID string }

// Key returns the call's key.
func (c *Call) Key() Key { return c.key }

// Client returns the call's origin, without the reasons that its arguments state.
func (c *Call) Client() message.Asker {
	return message.Asker{Client: c.client, Program: c.program, AgentID: c.req.AgentID, ConversationID: c.req.ConversationID}
}

// MemoryBytes estimates an ended call's memory; 0 before its end.
func (c *Call) MemoryBytes() int {
	events := c.Events(0)
	if len(events) == 0 {
		return 0
	}
	final, ended := events[len(events)-1].(Final)
	if !ended {
		return 0
	}
	n := len(c.asked.Arguments)
	if final.Return != nil {
		n += 3 * len(final.Return.Result)
	}
	if capture := c.Capture(); capture != nil {
		const most = 128 << 10 // head and tail of a stream
		stdout, stderr, _ := capture.Totals()
		n += int(min(stdout, most) + min(stderr, most) + min(stdout+stderr, most))
	}
	return n
}

// ToolName returns the requested name.
func (c *Call) ToolName() string { return c.asked.Name }

// Answer returns the message that answers the call in its dialect; nil if that is the return itself.
func (c *Call) Answer(r message.ToolReturn) any {
	req := *c.req
	req.Item = ""
	return req.Answer(r)
}

// BackgroundOf returns a background call's parent, or nil.
func (c *Call) BackgroundOf() *Call { return c.of }

// Watch adds a watcher. wake is called whenever there may be news, and at once if there is some. It
// must not block.
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

// View is Watch, but does not keep the call alive: its linger time runs while no one else watches.
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

// HasNews reports whether there is anything to read from the beginning.
func (c *Call) HasNews() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasNews()
}

// The caller holds mu.
func (c *Call) hasNews() bool { return len(c.events) > 0 || c.capture != nil }

// Call returns the watched call.
func (w *Watcher) Call() *Call { return w.call }

// Detach ends the attachment. A call without watchers is cancelled after its linger time. Detach may
// be called again.
func (w *Watcher) Detach() {
	c := w.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, views := c.viewers[w]; views {
		delete(c.viewers, w)
		return
	}
	delete(c.watchers, w)
	unwatched := len(c.watchers) == 0 && !c.done
	if unwatched && c.leaving == nil && c.linger >= 0 {
		c.leaving = time.AfterFunc(c.linger, func() { c.stop(errClientGone) })
	}
}

// Events returns the events from an index on. The slice must not be changed.
func (c *Call) Events(from int) []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events[from:len(c.events):len(c.events)]
}

// Capture returns the call's output, nil before it runs.
func (c *Call) Capture() *spool.Capture {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.capture
}

// Cancel stops the call; the return repeats the reason. It may come late or twice.
func (c *Call) Cancel(reason string) {
	c.stop(&cancelled{shortened(reason, 500)})
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
	if final, ok := event.(Final); ok && final.Err != nil {
		final.Err.AgentID = c.key.Agent
	}
	c.mu.Lock()
	c.events = append(c.events, event)
	switch event.(type) {
	case message.ToolStarted:
		closeOnce(c.begun)
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

// closeOnce closes a channel unless it is closed, for one goroutine at a time.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// proceed updates the progress. change must not block.
func (c *Call) proceed(state string, change func(*progress)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress.state = state
	if change != nil {
		change(&c.progress)
	}
}

// wakeAll wakes the watchers, which neither block nor call back.
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
