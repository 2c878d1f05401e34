// Package dispatch takes each tool call from request to return.
//
// Only dispatch knows both vocabularies: the messages on the wire and the effects that policy judges. It owns
// the calls: they live on the daemon's context, and sessions attach to them.
package dispatch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

// Options configure a Dispatcher. All fields but Redact, Recorded and Single are required.
type Options struct {
	Registry   *tools.Registry // the tools by name; each workspace has its own
	Workspaces Workspaces
	Approvals  *approval.Queue[message.ApprovalRequest]
	Journal    *journal.Journal
	Log        *zap.Logger
	SpoolDir   string // output files of calls, one directory each
	// Kill ends the process tree of a call that a crashed daemon left behind.
	Kill     func(identity string) (bool, error)
	Limits   Limits
	Redact   []string          // values that must not leave a call
	Recorded func(bytes int64) // called with the size of an ended call's output; may be nil
	// Single: the clients end with the Dispatcher, so it keeps no calls, and continues none that another has kept.
	Single bool
}

// Limits bound the calls. All are required.
type Limits struct {
	Concurrent      int // calls that run at once
	PerConnection   int // of them, those of one connection
	Waiting         int // calls that wait for a slot or a person
	Background      int // calls that go on after their return; 0: none
	BackgroundEach  int // of them, those that one connection began
	AskedHosts      int // that one running call may ask about; 0: none
	ReturnBytes     int // of each stream, and of result, in a return
	SpoolBytes      int64
	Linger          time.Duration // a call's life after its last session left
	ApprovalTimeout time.Duration
}

// maxHeld bounds the arguments of unanswered calls in memory, in bytes.
const maxHeld = 256 << 20

// A Dispatcher runs calls. Its methods may be called concurrently.
type Dispatcher struct {
	opt    Options
	slots  *queue        // for running calls
	builds chan struct{} // one element per call being parsed
	seers  atomic.Pointer[[]func(*Call, any)]

	mu           sync.Mutex
	calls        map[Key]*Call // unanswered calls by client scope and id
	waiting      int           // calls admitted and not yet running
	held         int64         // bytes of the arguments of calls
	unsaved      map[journal.Key]unsaved
	earlyCancels earlyCancels
	audience     map[*listener]struct{}
	memory       memory // remembered answers
	lent         map[conversation]*lentLoopback
	stopping     bool
	wg           sync.WaitGroup // one per call in calls
}

// New returns a Dispatcher. Shutdown ends it.
func New(opt Options) *Dispatcher {
	if opt.Journal != nil {
		opt.Journal.Redact(spool.Replacer(opt.Redact))
	}
	d := &Dispatcher{
		opt:   opt,
		slots: newQueue(opt.Limits.Concurrent, opt.Limits.PerConnection),
		// Parsing is CPU-bound, so more at once is no faster. But analysing a hostile script can cost hundreds of
		// megabytes.
		builds:  make(chan struct{}, runtime.GOMAXPROCS(0)),
		calls:   make(map[Key]*Call),
		unsaved: make(map[journal.Key]unsaved), earlyCancels: make(earlyCancels), audience: make(map[*listener]struct{}), lent: make(map[conversation]*lentLoopback),
	}
	return d
}

// Observe calls seen for each later event of each call, once its watchers can read it. seen must not block.
// Observe may be called several times.
func (d *Dispatcher) Observe(seen func(c *Call, event any)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []func(*Call, any)
	if earlier := d.seers.Load(); earlier != nil {
		all = slices.Clone(*earlier)
	}
	all = append(all, seen)
	d.seers.Store(&all)
}

func (d *Dispatcher) seen(c *Call, event any) {
	all := d.seers.Load()
	if all == nil {
		return
	}
	for _, seen := range *all {
		seen(c, event)
	}
}

// Submission is one call from a session.
type Submission struct {
	Client  string           // the token's name, not the connection: it scopes the call's id
	Conn    string           // the connection: slots are assigned to connections in turn
	Program *message.Program // as the connection identified itself; nil: it did not
	Dir     string           // canonical; selects the workspace of a call that names no directory; "": the first
	Request *message.Request
	Call    message.ToolCall
	Limit   sandbox.Limit // the most that the client lets the call do
	TooMany string        // not empty: the session has too many calls, for this reason
	Keep    bool          // the client can repeat the call after a restart: until it has begun, it outlives the Dispatcher
	Wake    func()        // see Call.Watch
}

// Submit starts a call, or attaches to the same call if it runs or has run. It does not block; the Watcher's
// call has the events.
func (d *Dispatcher) Submit(s Submission) *Watcher {
	c, ctx := d.newCall(s)
	if strings.HasPrefix(c.ID, message.BackgroundPrefix) {
		return refuseDuplicate(c, s.Wake, "is reserved: ids that begin with "+message.BackgroundPrefix+" are those of background calls. Use another id")
	}
	d.mu.Lock()
	if running, ok := d.calls[c.key]; ok {
		d.mu.Unlock()
		if running.hash != c.hash {
			return refuseDuplicate(c, s.Wake, otherArguments)
		}
		return running.Watch(s.Wake)
	}
	if d.stopping {
		d.mu.Unlock()
		w := c.Watch(s.Wake)
		c.emit(Final{Return: d.unrecorded(c, refusal{message.Shutdown, "toold is stopping and takes no call. Send it again with the same id when toold is back: if it has run, it does not run twice"})})
		return w
	}
	d.admit(c)
	var refused *refusal
	if c.cancelledEarly = d.earlyCancels.take(c.client, c.ID); c.cancelledEarly {
		refused = &refusal{message.Cancelled, "the call was cancelled before it came; nothing of it ran"}
	} else if tooMany := cmp.Or(s.TooMany, d.crowded()); tooMany != "" {
		refused = &refusal{message.TooManyCalls, tooMany + "; nothing ran. Wait for returns before you send more, and send this one again under a new id"}
	}
	d.mu.Unlock()
	w := c.Watch(s.Wake)
	// Ends when the call has its return in the journal; Shutdown waits for it.
	go d.live(ctx, c, refused)
	return w
}

func (d *Dispatcher) newCall(s Submission) (*Call, context.Context) {
	ctx, stop := context.WithCancelCause(context.Background())
	canonical := s.Call.Name
	_, name, known := d.opt.Registry.Lookup(s.Call.Name)
	if known {
		canonical = name
	}
	// A call must not keep its whole frame in memory.
	req := *s.Request
	req.Frame, req.Calls = nil, nil
	s.Call.Arguments = bytes.Clone(s.Call.Arguments)
	c := &Call{
		ID: s.Call.ID, Dialect: s.Request.Dialect,
		client: s.Client, conn: s.Conn, program: s.Program, dir: s.Dir, limit: s.Limit, key: Key{s.Client, s.Request.AgentID, s.Call.ID},
		tool: canonical, listed: known, hash: tools.CanonicalHash(canonical, s.Call.Arguments),
		req: &req, asked: s.Call, born: time.Now(), keep: s.Keep && !d.opt.Single && s.Limit.IsZero() && s.Call.Invalid == "",
		stop: stop, linger: d.opt.Limits.Linger,
		input:    newInbox(),
		begun:    make(chan struct{}),
		ended:    make(chan struct{}),
		watchers: make(map[*Watcher]struct{}),
		progress: progress{state: message.CallReceived},
	}
	c.asker, c.seen = sync.OnceValue(c.findAsker), d.seen
	return c, ctx
}

const otherArguments = "belongs to a call with other arguments; use a new id for a new call"

// refuseDuplicate answers a request that uses the id of another call.
func refuseDuplicate(c *Call, wake func(), why string) *Watcher {
	c.seen = nil // the id belongs to another call
	w := c.Watch(wake)
	c.emit(Final{Err: about(c.ID, message.DuplicateToolCall.Errorf("tool_call_id %q %s", c.ID, why))})
	return w
}

// admit counts a call among the unanswered. The caller holds mu.
func (d *Dispatcher) admit(c *Call) {
	d.calls[c.key] = c
	d.waiting++
	d.held += int64(len(c.asked.Arguments))
	d.wg.Add(1)
}

// crowded returns why a call just admitted is one too many, or "". The caller holds mu.
func (d *Dispatcher) crowded() string {
	switch {
	case d.waiting > d.opt.Limits.Waiting:
		return fmt.Sprintf("%d calls wait already", d.opt.Limits.Waiting)
	case d.held > maxHeld:
		return fmt.Sprintf("the arguments of unanswered calls take more than %d MiB", maxHeld>>20)
	}
	return ""
}

func (d *Dispatcher) forget(c *Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.calls, c.key)
	d.held -= int64(len(c.asked.Arguments))
}

func (d *Dispatcher) notWaiting() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting--
}

// Find returns the unanswered calls with a tool_call_id, the oldest first. An empty client means any client, an
// empty id any id.
func (d *Dispatcher) Find(client, id string) []*Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []*Call
	for _, c := range d.calls {
		if (id == "" || c.ID == id) && (client == "" || c.client == client) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *Call) int { return a.born.Compare(b.born) })
	return found
}

// CancelAll stops every unanswered call of a client, background calls included;
// an empty client means all.
func (d *Dispatcher) CancelAll(client, reason string) {
	for _, c := range d.Find(client, "") {
		c.Cancel(reason)
	}
}

// Shutdown refuses new calls, stops the running ones and returns when each has its return in the journal, or is
// kept there for the next daemon, or when ctx ends.
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
