// Package dispatch handles each tool call from request to return.
//
// It turns messages on the wire into the effects that policies decide on. It owns the calls, which outlive the
// sessions that watch them.
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
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
	"github.com/toold/toold/tools/spool"
)

// Options configures a Dispatcher. Redact, Recorded, Single and Known are optional.
type Options struct {
	Registry   *tools.Registry // for names of tools; each workspace has its own registry
	Workspaces Workspaces
	Approvals  *approval.Queue[message.ApprovalRequest]
	Journal    *journal.Journal
	Log        *zap.Logger
	SpoolDir   string // one directory per call for its output files
	// Kill ends the processes that a crashed daemon left.
	Kill     func(identity string) (bool, error)
	Limits   Limits
	Redact   []string          // secrets to mask in all that leaves a call
	Recorded func(bytes int64) // receives the size of an ended call's output
	// Single: the clients end with the Dispatcher, so it neither keeps calls nor continues those of earlier daemons.
	Single bool
	// Known reports whether a client still has a token. It is called for calls that have waited.
	Known func(client string) bool
}

// Limits limits the calls. All fields are required.
type Limits struct {
	Concurrent      int // running calls
	PerConnection   int // running calls of one connection
	Waiting         int // calls that wait for a slot or for approval
	Background      int // calls that continue after their return; 0: none
	BackgroundEach  int // background calls started by one connection
	AskedHosts      int // hosts that one running call may request approval for; 0: none
	ReturnBytes     int // of each stream, and of result, in a return
	SpoolBytes      int64
	Linger          time.Duration // how long a call runs without watching sessions
	ApprovalTimeout time.Duration
}

// maxHeld limits what unanswered calls keep in memory, in bytes: their arguments, as they came and decoded, and about
// effectBytes for each effect.
const (
	maxHeld     = 256 << 20
	effectBytes = 512
)

// A Dispatcher runs calls. It is safe for concurrent use.
type Dispatcher struct {
	opt    Options
	slots  *queue        // for running calls
	builds chan struct{} // one element per call that is being analysed
	seers  atomic.Pointer[[]func(*Call, any)]

	mu           sync.Mutex
	calls        map[Key]*Call // unanswered calls
	waiting      int           // admitted calls that do not run yet
	held         int64         // bytes that calls keep; see maxHeld
	unsaved      map[journal.Key]unsaved
	earlyCancels earlyCancels
	audience     map[*listener]struct{}
	memory       memory // answers remembered for conversations
	lent         map[conversation]*lentLoopback
	stopping     bool
	wg           sync.WaitGroup // one for each call in calls
}

// New returns a Dispatcher. The caller must call Shutdown.
func New(opt Options) *Dispatcher {
	if opt.Journal != nil {
		opt.Journal.Redact(spool.Replacer(opt.Redact))
	}
	d := &Dispatcher{
		opt:   opt,
		slots: newQueue(opt.Limits.Concurrent, opt.Limits.PerConnection),
		// Analysis is CPU-bound, and a hostile script can need hundreds of megabytes.
		builds:  make(chan struct{}, runtime.GOMAXPROCS(0)),
		calls:   make(map[Key]*Call),
		unsaved: make(map[journal.Key]unsaved), earlyCancels: make(earlyCancels), audience: make(map[*listener]struct{}), lent: make(map[conversation]*lentLoopback),
	}
	return d
}

// Observe makes seen receive each later event of any call, after watchers can read it. seen must not block. Observe
// may be called several times.
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

// Submission is a call that a session submits.
type Submission struct {
	Client  string           // token name; ids are unique per client and agent
	Conn    string           // connection; free slots are assigned to connections in turn
	Program *message.Program // may be nil
	Dir     string           // canonical directory that selects the workspace; "": the default one
	Near    string           // absolute path whose workspace, if any, takes precedence over Dir
	Request *message.Request
	Call    message.ToolCall
	Limit   sandbox.Limit // restricts the call's sandbox further
	TooMany string        // if set, why the session has too many calls
	Stopped *string       // if set, the reason for which the client cancelled the item, so the call does not run
	Keep    bool          // the client can repeat the call after a restart, so a call that has not started is kept
	Wake    func()        // see Call.Watch
}

// Submit starts a call, or attaches to the same call if it runs or has ended. It does not block, unless there are too
// many calls: it then waits until the refusal is journaled, so that a client cannot send further ones meanwhile. The
// events are those of the Watcher's call.
func (d *Dispatcher) Submit(s Submission) *Watcher {
	c, ctx := d.newCall(s)
	for _, id := range []string{c.ID, c.req.AgentID, c.req.ConversationID} {
		if c.ID == "" || !message.IsID(id) { // the journal keeps the id
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
	c.earlyCancel = d.earlyCancels.first(c.client, d.earlyCancelName(c, c.ID), c.ID, d.earlyCancelName(c, c.req.Item), c.req.Item)
	tooMany := cmp.Or(s.TooMany, d.crowded())
	switch {
	case s.Stopped != nil:
		c.Cancel(*s.Stopped)
		refused = stopped(ctx)
	case c.earlyCancel != "":
		refused = &refusal{message.Cancelled, "the call was cancelled before it came, so it did not run"}
	case tooMany != "":
		refused = refuseCrowd(tooMany)
	}
	d.mu.Unlock()
	w := c.Watch(s.Wake)
	if tooMany != "" {
		d.live(ctx, c, refused)
		return w
	}
	// Ends when the call's return is journaled; Shutdown waits.
	go d.live(ctx, c, refused)
	return w
}

// stoppingAnswer answers a call that arrives while the Dispatcher stops. A recorded call gets its own return.
func (d *Dispatcher) stoppingAnswer(c *Call) Final {
	rec, err := d.opt.Journal.FindAs(context.Background(), c.key.Client, c.key.Agent, c.key.ID)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		ret := d.makeReturn(c, outcome{refused: &refusal{message.Shutdown, "toold is stopping and takes no call. Send it again with the same id when toold is back: if it has run, it does not run twice"}})
		return Final{Return: &ret}
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
	// The call must not keep its whole frame in memory.
	req := *s.Request
	req.Calls = nil
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

		firstChanged: func() string { return "" },
	}
	c.asker, c.seen = sync.OnceValue(c.findAsker), d.seen
	return c, ctx
}

const otherArguments = "belongs to a call with other arguments; use a new id for a new call"

func refuseDuplicate(c *Call, wake func(), why string) *Watcher {
	return refuse(c, wake, about(c.ID, message.DuplicateToolCall.Errorf("tool_call_id %q %s", c.ID, why)))
}

func refuse(c *Call, wake func(), e *message.Error) *Watcher {
	c.seen = nil
	w := c.Watch(wake)
	c.emit(Final{Err: e})
	return w
}

// admit adds an unanswered call. The caller holds mu.
func (d *Dispatcher) admit(c *Call) {
	d.calls[c.key] = c
	d.waiting++
	d.wg.Add(1)
	d.hold(c, 2*len(c.asked.Arguments))
}

// hold adds to the bytes that a call keeps. The caller holds mu.
func (d *Dispatcher) hold(c *Call, bytes int) {
	c.held += int64(bytes)
	d.held += int64(bytes)
}

// holdEffects refuses a call whose effects take too much memory beside those of others.
func (d *Dispatcher) holdEffects(c *Call, effects []policy.Effect) *refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold(c, len(effects)*effectBytes)
	if d.held > maxHeld {
		return refuseCrowd(heldTooMuch)
	}
	return nil
}

func refuseCrowd(why string) *refusal {
	return &refusal{message.TooManyCalls, why + "; nothing ran. Wait for returns before you send more, and send this one again under a new id"}
}

const heldTooMuch = "unanswered calls take more than 256 MiB of memory"

// crowded returns why the admitted call is one too many, or "". The caller holds mu.
func (d *Dispatcher) crowded() string {
	switch {
	case d.waiting > d.opt.Limits.Waiting:
		return fmt.Sprintf("%d calls wait already", d.opt.Limits.Waiting)
	case d.held > maxHeld:
		return heldTooMuch
	}
	return ""
}

func (d *Dispatcher) forget(c *Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.calls, c.key)
	d.held -= c.held
}

func (d *Dispatcher) notWaiting() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting--
}

// Find returns unanswered calls, oldest first. Empty client or id means any. An item's id finds its current part.
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

// Shutdown refuses new calls, stops running ones, and waits until all have returned or are kept for the next daemon,
// or until ctx ends. It then tries once more to journal unsaved returns.
func (d *Dispatcher) Shutdown(ctx context.Context) error {
	d.mu.Lock()
	d.stopping = true
	for _, c := range d.calls {
		c.stop(errShutdown)
	}
	d.mu.Unlock()
	drained := make(chan struct{})
	// Ends with the last call.
	go func() { d.wg.Wait(); close(drained) }()
	defer d.saveAll(ctx)
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
