// Package dispatch takes each tool call from request to return.
//
// It is the only place that knows both vocabularies: the messages on the wire
// and the effects that policy judges. It owns the calls: they live on the
// daemon's context, and sessions merely attach to them.
package dispatch

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// Options is what a Dispatcher works with. All fields but Redact are needed.
type Options struct {
	Registry  *tools.Registry
	Policy    *policy.Policy
	Approvals *approval.Queue[message.ApprovalRequest]
	Journal   *journal.Journal
	Log       *zap.Logger
	SpoolDir  string // output files of calls, one folder each
	// Kill ends the process tree of a call that a crashed daemon left behind.
	Kill   func(identity string) (bool, error)
	Limits Limits
	Redact []string // values that must not leave a call
}

// Limits bound the calls. All are needed.
type Limits struct {
	Concurrent      int // calls that run at once
	Waiting         int // calls that wait for a place or a person
	ReturnBytes     int // of each stream, and of result, in a return
	SpoolBytes      int64
	Linger          time.Duration // a call's life after its last session left
	ApprovalTimeout time.Duration
}

// maxHeld bounds the arguments that unanswered calls keep in memory, in bytes.
const maxHeld = 256 << 20

// A Dispatcher runs calls. Its methods may be called concurrently.
type Dispatcher struct {
	opt    Options
	rules  atomic.Pointer[rules]
	slots  chan struct{} // one element per running call
	builds chan struct{} // one element per call being parsed

	mu       sync.Mutex
	calls    map[string]*Call // unanswered calls by client scope and id
	waiting  int              // calls admitted and not yet running
	held     int64            // bytes of the arguments of calls
	stopping bool
	wg       sync.WaitGroup // one per call in calls
}

// New returns a Dispatcher. Shutdown ends it.
func New(opt Options) *Dispatcher {
	d := &Dispatcher{
		opt:   opt,
		slots: make(chan struct{}, opt.Limits.Concurrent),
		// Parsing only computes, so more at once is no faster. But a hostile
		// script can cost hundreds of megabytes while it is analysed.
		builds: make(chan struct{}, runtime.GOMAXPROCS(0)),
		calls:  make(map[string]*Call),
	}
	d.rules.Store(&rules{policy: opt.Policy, replaced: make(chan struct{})})
	return d
}

// Submission is one call as a session hands it over.
type Submission struct {
	Client  string // the token's name, not the connection: it scopes the call's id
	Request *message.Request
	Call    message.ToolCall
	TooMany string // not empty: the session has too many calls, and the refusal says so
	Wake    func() // see Call.attach
}

// Submit starts a call, or attaches to it when the same call runs or has run
// already. It returns at once; everything else is told through the Watcher's
// call.
func (d *Dispatcher) Submit(s Submission) *Watcher {
	c, ctx := d.newCall(s)
	d.mu.Lock()
	if running, ok := d.calls[c.key]; ok {
		d.mu.Unlock()
		if running.hash != c.hash {
			return refuseDuplicate(c, s.Wake)
		}
		return running.attach(s.Wake)
	}
	if d.stopping {
		d.mu.Unlock()
		w := c.attach(s.Wake)
		c.emit(Final{Return: d.unrecorded(c, refusal{message.Shutdown, "toold is stopping; nothing ran. Send the call again when it is back"})})
		return w
	}
	d.admit(c)
	tooMany := s.TooMany
	if tooMany == "" {
		tooMany = d.crowded()
	}
	d.mu.Unlock()
	w := c.attach(s.Wake)
	// Ends when the call has its return in the journal; Shutdown waits for it.
	go d.live(ctx, c, tooMany)
	return w
}

func (d *Dispatcher) newCall(s Submission) (*Call, context.Context) {
	ctx, stop := context.WithCancelCause(context.Background())
	canonical := s.Call.Name
	if _, name, ok := d.opt.Registry.Lookup(s.Call.Name); ok {
		canonical = name
	}
	return &Call{
		ID: s.Call.ID, Dialect: s.Request.Dialect,
		client: s.Client, key: s.Client + "\x00" + s.Request.AgentID + "\x00" + s.Call.ID,
		tool: canonical, hash: tools.CanonicalHash(canonical, s.Call.Arguments),
		req: s.Request, asked: s.Call, born: time.Now(),
		stop: stop, linger: d.opt.Limits.Linger,
		input:    make(chan tools.Input, 64),
		watchers: make(map[*Watcher]struct{}),
	}, ctx
}

// refuseDuplicate answers a request that uses the id of another call.
func refuseDuplicate(c *Call, wake func()) *Watcher {
	w := c.attach(wake)
	e := message.Errorf(message.DuplicateToolCall, "tool_call_id %q belongs to a call with other arguments; use a new id for a new call", c.ID)
	e.CallID = c.ID
	c.emit(Final{Err: e})
	return w
}

// admit counts a call among the unanswered. Called with mu held.
func (d *Dispatcher) admit(c *Call) {
	d.calls[c.key] = c
	d.waiting++
	d.held += int64(len(c.asked.Arguments))
	d.wg.Add(1)
}

// crowded says why a call just admitted is one too many, or nothing. Called with
// mu held.
func (d *Dispatcher) crowded() string {
	switch {
	case d.waiting > d.opt.Limits.Waiting:
		return fmt.Sprintf("%d calls wait already", d.opt.Limits.Waiting)
	case d.held > maxHeld:
		return fmt.Sprintf("the arguments of unanswered calls take more than %d MiB", maxHeld>>20)
	}
	return ""
}

// forget drops a call that is answered.
func (d *Dispatcher) forget(c *Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.calls, c.key)
	d.held -= int64(len(c.asked.Arguments))
}

// notWaiting tells that a call runs now or is answered.
func (d *Dispatcher) notWaiting() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting--
}

// Find returns the unanswered calls with a tool_call_id. An empty client means
// any client's, an empty id any id.
func (d *Dispatcher) Find(client, id string) []*Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []*Call
	for _, c := range d.calls {
		if (id == "" || c.ID == id) && (client == "" || c.client == client) {
			found = append(found, c)
		}
	}
	return found
}

// CancelAll stops every unanswered call of a client; an empty client means all.
func (d *Dispatcher) CancelAll(client string) {
	for _, c := range d.Find(client, "") {
		c.Cancel()
	}
}

// Shutdown refuses new calls, stops the running ones and returns when each has
// its return in the journal, or when ctx ends.
func (d *Dispatcher) Shutdown(ctx context.Context) error {
	d.mu.Lock()
	d.stopping = true
	for _, c := range d.calls {
		c.stop(errShutdown)
	}
	d.mu.Unlock()
	drained := make(chan struct{})
	// Ends when the last call has returned; each call ends within its grace.
	go func() { d.wg.Wait(); close(drained) }()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
