package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

// Final is the last event of a call: its return, or the error_message that explains why there is no return.
type Final struct {
	Return     *message.ToolReturn
	Err        *message.Error
	Background *Call // call that continues after this return, or nil
	Kept       bool  // neither exists: toold stops, and the next daemon continues the call
}

// A Call is one tool call. Sessions read its events and output at their own pace; the call never waits for them.
type Call struct {
	ID      string // tool_call_id, unique per client and agent
	Dialect message.Dialect

	client  string
	conn    string // connection that its slot counts for; see queue
	program *message.Program
	asker   func() message.Asker
	dir     string           // directory of the connection; see Submission
	near    string           // see Submission
	limit   sandbox.Limit    // see Submission
	seen    func(*Call, any) // see Dispatcher.Observe; nil if the call never runs
	of      *Call            // parent of a background call; nil for others
	key     Key
	tool    string // canonical name, or the requested name if there is no such tool
	listed  bool   // the tool exists
	hash    string // of tool and arguments
	req     *message.Request
	parts   int // number of parts of its item; 0: not a part, or unknown
	asked   message.ToolCall
	rec     journal.Key // zero until the call is recorded
	born    time.Time
	stop    context.CancelCauseFunc
	linger  time.Duration // time to live without watchers; negative: unlimited
	input   *inbox
	begun   chan struct{} // closed when the call's process runs, or at its end
	ended   chan struct{} // closed when it has returned
	held    int64         // see maxHeld; guarded by Dispatcher.mu

	// Only the call's own goroutine changes these.
	workspace    *Workspace             // nil before enter
	leave        func()                 // releases workspace; nil if another call releases it
	profile      string                 // sandbox profile required by the policy
	approved     []string               // files that a person approved
	opened       []policy.Effect        // reads and writes that a person approved
	firstChanged func() string          // returns a file that changed since a person was asked, or ""
	escalation   *escalation.Escalation // what a person added to the sandbox; closed with the call
	pending      []any                  // events to emit after the call is recorded
	edited       tools.Invocation       // runs instead of the requested call, if not nil
	elsewhere    bool                   // another program executes it; see tools.Traits
	earlyCancel  string                 // name of a cancel that arrived before the call, or ""
	cancel       *cancelled             // set after it has run, if it was cancelled
	known        *journal.Record        // its record, if the journal already had the call
	steps        []Step
	keep         bool            // see Submission
	kept         bool            // its record has what the next daemon needs
	again        *journal.Record // its record, if an earlier daemon kept the call
	joined       chan struct{}   // for kept calls: closed, with mu held, when the client has reconnected
	resumed      chan struct{}   // for kept calls: closed when approval is requested again, or not needed
	lost         *refusal        // why the call cannot be journaled

	mu       sync.Mutex
	events   []any // append-only; ends with a Final
	capture  *spool.Capture
	watchers map[*Watcher]struct{}
	viewers  map[*Watcher]struct{} // see View
	leaving  *time.Timer           // runs while there are no watchers
	done     bool
	progress progress
}

type progress struct {
	state     string
	position  int // place in the queue, from 1
	preview   string
	pid       int
	startedAt time.Time
}

// A Watcher attaches a session to a call.
type Watcher struct {
	call *Call
	wake func()
}

// Key identifies a call. Clients may use the same id for calls of different agents.
type Key struct{ Client, Agent, ID string }

// Key returns the call's key.
func (c *Call) Key() Key { return c.key }

// Client returns where the call comes from, without the reasons stated in its arguments.
func (c *Call) Client() message.Asker {
	return message.Asker{Client: c.client, Program: c.program, AgentID: c.req.AgentID, ConversationID: c.req.ConversationID}
}

// MemoryBytes estimates the memory that an ended call uses. It returns 0 before the end.
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
		const most = 128 << 10 // limit for the head and tail of a stream
		stdout, stderr, _ := capture.Totals()
		n += int(min(stdout, most) + min(stderr, most) + min(stdout+stderr, most))
	}
	return n
}

// ToolName returns the name as requested; see Tool.
func (c *Call) ToolName() string { return c.asked.Name }

// Answer returns the message that answers the call in its dialect, or nil if that is the return itself.
func (c *Call) Answer(r message.ToolReturn) any {
	req := *c.req
	req.Item = ""
	return req.Answer(r)
}

// BackgroundOf returns the parent of a background call, or nil for other calls.
func (c *Call) BackgroundOf() *Call { return c.of }

// Watch adds a watcher. wake is called whenever there may be news, and at once if there is any. It must not block.
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

// View is Watch, but does not keep the call alive: without other watchers the call's linger time runs.
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

// HasNews reports whether the call has any events or output.
func (c *Call) HasNews() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasNews()
}

func (c *Call) hasNews() bool { return len(c.events) > 0 || c.capture != nil }

// Call returns the watched call.
func (w *Watcher) Call() *Call { return w.call }

// Detach removes the watcher. A call without watchers is cancelled after its linger time. Detach may be repeated.
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

// Events returns the events from an index on. The caller must not change the slice.
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

// Cancel stops the call. Its return states the reason. Cancel may be repeated, and has no effect after the end.
func (c *Call) Cancel(reason string) {
	c.stop(&cancelled{redact.Short(reason, 500)})
}

// notify emits an event, but not before the call is recorded: a duplicate receives only the recorded return.
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

// closeOnce closes a channel unless it is closed. It is not safe for concurrent use.
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

// wakeAll wakes watchers and viewers. wake must neither block nor use the call.
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
