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

// Final is the last event of a call: its return, or why this request has none.
type Final struct {
	Return     *message.ToolReturn
	Err        *message.Error
	Background *Call // continues after the return
	Kept       bool  // neither: toold stops, and the next daemon continues the call
}

// A Call is one tool call. Sessions read its events and output at their own pace; it never waits
// for them.
type Call struct {
	ID      string // unique per client
	Dialect message.Dialect

	client  string
	conn    string
	program *message.Program
	asker   func() message.Asker
	dir     string
	limit   sandbox.Limit
	seen    func(*Call, any)
	of      *Call
	key     Key
	tool    string // canonical, or as requested if unknown
	listed  bool   // it exists
	hash    string
	req     *message.Request
	asked   message.ToolCall
	rec     journal.Key
	born    time.Time
	stop    context.CancelCauseFunc
	linger  time.Duration // negative: unlimited
	input   *inbox
	begun   chan struct{} // closed when its process runs, or the call has ended
	ended   chan struct{} // closed with its return

	workspace      *Workspace // nil until enter
	leave          func()
	profile        string
	approved       []string               // files that a person approved
	opened         []policy.Effect        // reads and writes that a person approved
	escalation     *escalation.Escalation // a person's; closed with the call
	pending        []any                  // events, until the call is recorded
	edited         tools.Invocation       // replaces the requested call; or nil
	elsewhere      bool                   // another program runs it
	cancelledEarly bool                   // before it was received
	known          *journal.Record        // its earlier record
	steps          []Step
	keep           bool
	kept           bool            // the next daemon can continue it
	again          *journal.Record // record of an earlier daemon's call
	joined         chan struct{}   // of such a call: its client is back
	resumed        chan struct{}   // of such a call: it awaits approval, or need not
	lost           *refusal

	mu       sync.Mutex
	events   []any // append-only
	capture  *spool.Capture
	watchers map[*Watcher]struct{}
	viewers  map[*Watcher]struct{}
	leaving  *time.Timer // runs without watchers
	done     bool
	progress progress
}

type progress struct {
	state     string
	position  int
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

// Client returns the call's origin, without its arguments' reasons.
func (c *Call) Client() message.Asker {
	return message.Asker{Client: c.client, Program: c.program, AgentID: c.req.AgentID, ConversationID: c.req.ConversationID}
}

// MemoryBytes estimates an ended call's memory.
func (c *Call) MemoryBytes() int {
	n := len(c.asked.Arguments)
	for _, e := range c.Events(0) {
		if final, ok := e.(Final); ok && final.Return != nil {
			n += 3 * len(final.Return.Result)
		}
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

// Answer returns the dialect's answer; nil: the return itself.
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

// View is Watch without keeping the call alive: its linger time runs.
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

// HasNews reports whether there is anything to read.
func (c *Call) HasNews() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasNews()
}

func (c *Call) hasNews() bool { return len(c.events) > 0 || c.capture != nil }

// Call returns the watched call.
func (w *Watcher) Call() *Call { return w.call }

// Detach ends the attachment. The call is cancelled its linger time after the last one. Detach may
// be repeated.
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

// Events returns the events from an index on, read-only.
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

// closeOnce closes a channel unless it is closed. It is not concurrent.
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
