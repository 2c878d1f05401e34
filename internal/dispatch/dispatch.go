// Package dispatch takes each tool call from request to return.
//
// Only dispatch knows both the messages on the wire and the effects that policy judges. It
// owns the calls, which live on the daemon's context; sessions attach to them.
package dispatch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
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
	"github.com/toold/toold/tools/argument"
	"github.com/toold/toold/tools/spool"
)

// Options configure a Dispatcher. Redact, Recorded and Single are optional.
type Options struct {
	Registry   *tools.Registry // the tools by name; each workspace has its own
	Workspaces Workspaces
	Approvals  *approval.Queue[message.ApprovalRequest]
	Journal    *journal.Journal
	Log        *zap.Logger
	SpoolDir   string // output files of calls, one directory each
	// Kill ends a process tree left by a crashed daemon.
	Kill     func(identity string) (bool, error)
	Limits   Limits
	Redact   []string          // values that must not leave a call
	Recorded func(bytes int64) // receives the size of an ended call's output
	// Single: the clients end with the Dispatcher, so it keeps and continues no calls.
	Single bool
}

// Limits bound the calls. All are required.
type Limits struct {
	Concurrent      int // calls that run at once
	PerConnection   int // of them, those of one connection
	Waiting         int // calls that wait for a slot or a person
	Background      int // calls that continue after their return; 0: none
	BackgroundEach  int // of them, those that one connection began
	AskedHosts      int // that one running call may ask about; 0: none
	ReturnBytes     int // of each stream, and of result, in a return
	SpoolBytes      int64
	Linger          time.Duration // a call's life after its last session left
	ApprovalTimeout time.Duration
}

// maxHeld bounds the arguments of unanswered calls in memory, in bytes.
const maxHeld = 256 << 20

// A Dispatcher runs calls. It is safe for concurrent use.
type Dispatcher struct {
	opt    Options
	slots  *queue        // for running calls
	builds chan struct{} // one element per call being parsed
	seers  atomic.Pointer[[]func(*Call, any)]

	mu           sync.Mutex
	calls        map[Key]*Call // unanswered calls
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
		// Parsing is CPU-bound, and a hostile script can need hundreds of megabytes.
		builds:  make(chan struct{}, runtime.GOMAXPROCS(0)),
		calls:   make(map[Key]*Call),
		unsaved: make(map[journal.Key]unsaved), earlyCancels: make(earlyCancels), audience: make(map[*listener]struct{}), lent: make(map[conversation]*lentLoopback),
	}
	return d
}

// Observe calls seen for each later event of any call, once watchers can read it. seen must not
// block. Observe may be repeated.
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

// Submission is a session's call.
type Submission struct {
	Client  string           // token name: the scope of the call's id
	Conn    string           // slots are assigned to connections in turn
	Program *message.Program // or nil
	Dir     string           // canonical; selects the workspace of calls that name no directory; "": the first
	Near    string           // absolute path; its workspace, if it is in one, is that of a call that names no directory
	Request *message.Request
	Call    message.ToolCall
	Limit   sandbox.Limit // the most that the client lets the call do
	TooMany string        // if set, the session has too many calls, for this reason
	Stopped *string       // if set, the client has cancelled what the call is part of, for this reason: it does not run
	Keep    bool          // the client can repeat the call after a restart: until it begins, it outlives the Dispatcher
	Wake    func()        // see Call.Watch
}

// Submit starts a call, or attaches to the same one if it runs or has ended. It does not block;
// the Watcher's call has the events.
func (d *Dispatcher) Submit(s Submission) *Watcher {
	c, ctx := d.newCall(s)
	for _, id := range []string{c.ID, c.req.AgentID, c.req.ConversationID} {
		if c.ID == "" || !message.IsID(id) { // the journal keeps it
			return refuse(c, s.Wake, message.MissingToolCallID.Errorf("the id %.80q is not 1 to %d bytes of printable text; nothing ran. Send the call with another", id, message.MaxID))
		}
	}
	if strings.HasPrefix(c.ID, message.BackgroundPrefix) {
		return refuseDuplicate(c, s.Wake, "is reserved: ids that begin with "+message.BackgroundPrefix+" are those of background calls. Use another id")
	}
	d.mu.Lock()
	if running, ok := d.calls[c.key]; ok {
		d.mu.Unlock()
		if running.argsHash() != c.argsHash() {
			return refuseDuplicate(c, s.Wake, otherArguments)
		}
		return running.Watch(s.Wake)
	}
	if other := d.liveNamesake(c); other != "" {
		d.mu.Unlock()
		return refuseDuplicate(c, s.Wake, clash(other))
	}
	if d.stopping {
		d.mu.Unlock()
		w := c.Watch(s.Wake)
		c.emit(d.stoppingAnswer(c))
		return w
	}
	d.admit(c)
	var refused *refusal
	c.earlyCancel = d.earlyCancels.first(c.client, d.fence(c, c.ID), c.ID, d.fence(c, c.req.Item), c.req.Item)
	tooMany := cmp.Or(s.TooMany, d.crowded())
	switch {
	case s.Stopped != nil:
		c.Cancel(*s.Stopped)
		refused = stopped(ctx)
	case c.earlyCancel != "":
		refused = &refusal{message.Cancelled, "the call was cancelled before it came, so it did not run"}
	case tooMany != "":
		refused = &refusal{message.TooManyCalls, tooMany + "; nothing ran. Wait for returns before you send more, and send this one again under a new id"}
	}
	d.mu.Unlock()
	w := c.Watch(s.Wake)
	// Ends when its return is journaled; Shutdown waits.
	go d.live(ctx, c, refused)
	return w
}

// stoppingAnswer answers a call that comes while the Dispatcher stops: one that is recorded has its own return.
func (d *Dispatcher) stoppingAnswer(c *Call) Final {
	rec, err := d.opt.Journal.FindAs(context.Background(), c.key.Client, c.key.Agent, c.key.ID)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return Final{Return: d.unrecorded(c, refusal{message.Shutdown, "toold is stopping and takes no call. Send it again with the same id when toold is back: if it has run, it does not run twice"})}
	case err != nil:
		return Final{Err: about(c.ID, message.InternalError.Errorf("toold is stopping, and the journal cannot be read: %v. Send tool call %q again with the same id when toold is back: if it has run, it does not run twice", err, c.ID))}
	case rec.ArgsHash == c.argsHash() && waits(&rec) && d.returnOf(rec) == nil:
		return Final{Kept: true}
	}
	return d.replay(c, rec)
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
	keep := s.Keep && !d.opt.Single && s.Limit.IsZero()
	parts := 0
	if s.Request.Item != "" {
		parts = len(s.Request.Calls)
	}
	c := &Call{
		ID: s.Call.ID, Dialect: s.Request.Dialect,
		client: s.Client, conn: s.Conn, program: s.Program, dir: s.Dir, near: s.Near, limit: s.Limit, key: Key{s.Client, s.Request.AgentID, s.Call.ID},
		tool: canonical, listed: known, hash: argument.Hash(canonical, s.Call.Arguments),
		req: &req, parts: parts, asked: s.Call, born: time.Now(), keep: keep && s.Call.Invalid == "",
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
	return refuse(c, wake, about(c.ID, message.DuplicateToolCall.Errorf("tool_call_id %q %s", c.ID, why)))
}

// refuse answers a request whose id is not its own.
func refuse(c *Call, wake func(), e *message.Error) *Watcher {
	c.seen = nil
	w := c.Watch(wake)
	c.emit(Final{Err: e})
	return w
}

// admit counts an unanswered call. The caller holds mu.
func (d *Dispatcher) admit(c *Call) {
	d.calls[c.key] = c
	d.waiting++
	d.held += int64(len(c.asked.Arguments))
	d.wg.Add(1)
}

// crowded returns why the call just admitted is one too many, or "". The caller holds mu.
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

// Find returns unanswered calls, the oldest first. Empty client or id: any. The id of an item finds its running part.
func (d *Dispatcher) Find(client, id string) []*Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []*Call
	for _, c := range d.calls {
		ofClient := client == "" || c.client == client
		if ofClient && (id == "" || c.named(id)) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *Call) int { return a.born.Compare(b.born) })
	return found
}

func (c *Call) named(id string) bool { return c.ID == id || c.req.Item == id }

// Shutdown refuses new calls, stops running ones, and waits until each has its return or is kept
// for the next daemon, or until ctx ends. Then it tries once more to record unsaved returns.
func (d *Dispatcher) Shutdown(ctx context.Context) error {
	d.mu.Lock()
	d.stopping = true
	for _, c := range d.calls {
		c.stop(errShutdown)
	}
	d.mu.Unlock()
	drained := make(chan struct{})
	// Ends with the last call, within its grace.
	go func() { d.wg.Wait(); close(drained) }()
	defer d.saveAll(ctx)
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
