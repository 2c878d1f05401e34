package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

const forEver time.Duration = -1

type listener struct {
	client string
	begun  func(*Call)
}

// maxNotifiedAtOnce limits the ended background calls that a new connection is notified of. The client's next
// connection gets the others.
const maxNotifiedAtOnce = 100

// Join calls begun for each of a client's background calls: running ones, those whose end was not reported, and each
// that starts until leave is called. begun must not block.
func (d *Dispatcher) Join(client string, begun func(*Call)) (leave func()) {
	l := &listener{client, begun}
	d.mu.Lock()
	d.audience[l] = struct{}{}
	var now []*Call
	for _, c := range d.calls {
		if c.of != nil && c.client == client {
			now = append(now, c)
		}
	}
	d.mu.Unlock()
	for _, c := range append(now, d.unnotified(client, now)...) {
		begun(c)
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.audience, l)
	}
}

func (d *Dispatcher) unnotified(client string, followed []*Call) (list []*Call) {
	records, err := d.opt.Journal.Undelivered(context.Background(), client, maxNotifiedAtOnce)
	if err != nil {
		d.opt.Log.Error("cannot find the background calls to notify a client of", zap.String("client", client), zap.Error(err))
	}
	for _, rec := range records {
		if slices.ContainsFunc(followed, func(c *Call) bool { return c.ID == rec.ID }) {
			continue
		}
		if c := d.ended(rec); c != nil {
			list = append(list, c)
		}
	}
	return list
}

// background starts an invocation as a separate call. It returns when that runs or has failed.
func (d *Dispatcher) background(ctx context.Context, parent *Call, inv tools.Invocation, out outcome) outcome {
	c, life, refused := d.spawn(parent, out.decision)
	if refused != nil {
		out.refused = refused
		return out
	}
	// Canceling the parent also stops the background call until the parent has ended.
	context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			c.stop(cause)
		}
	})
	// Ends when the call's return is journaled; Shutdown waits.
	go d.liveOn(life, c, inv, out.decision)
	<-c.begun
	started, failed := c.start()
	if failed != nil {
		out.refused, out.cause = failed, causeOf(ctx, failed.kind)
		return out
	}
	out.started = c
	out.result = tools.Result{
		Text: fmt.Sprintf("Started in the background as %[1]s; it runs on after this return. Read its output with bash_output {\"call_id\": %[1]q, \"wait\": 5000}, stop it with bash_kill {\"call_id\": %[1]q}; list_calls lists what runs.", c.ID),
	}
	if started != nil {
		out.result.Terminal = started.Terminal
	}
	return out
}

func (d *Dispatcher) spawn(parent *Call, said *message.Decision) (*Call, context.Context, *refusal) {
	asked := parent.asked
	asked.ID = message.NewID(strings.TrimSuffix(message.BackgroundPrefix, "-"))
	c, life := d.newCall(Submission{Client: parent.client, Conn: parent.conn, Program: parent.program, Dir: parent.dir, Request: parent.req, Call: asked})
	c.of, c.linger, c.profile, c.limit, c.approved, c.opened = parent, forEver, parent.profile, parent.limit, parent.approved, parent.opened
	c.workspace = parent.workspace
	c.progress.preview = parent.progress.preview
	notify, refused := d.admitBackground(c)
	if refused != nil {
		return nil, nil, refused
	}
	rec, _, err := d.opt.Journal.Begin(context.Background(), d.journalled(c), journalDecision(said))
	if err == nil {
		c.rec = rec.Key
		c.escalation, parent.escalation = parent.escalation, nil // the background call owns it now
		c.leave, parent.leave = parent.leave, nil
		for _, begun := range notify {
			begun(c)
		}
		return c, life, nil
	}
	refused = &refusal{message.InternalError, "the background call cannot be journalled, so nothing ran: " + err.Error()}
	d.forget(c)
	d.wg.Done()
	return nil, nil, refused
}

func (d *Dispatcher) admitBackground(c *Call) (notify []func(*Call), refused *refusal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, own := d.backgroundCalls(c.conn)
	tooMany := func(which string) *refusal {
		return &refusal{message.TooManyCalls, which + "; nothing ran. Stop one that is not needed with bash_kill (list_calls lists them), or run this one without background"}
	}
	switch {
	case d.stopping:
		return nil, &refusal{message.Shutdown, "toold is stopping; nothing ran. Send the call again under a new id when it is back"}
	case all >= d.opt.Limits.Background:
		return nil, tooMany(fmt.Sprintf("%d background calls run already (limits.background_calls)", all))
	case own >= d.opt.Limits.BackgroundEach:
		return nil, tooMany(fmt.Sprintf("%d background calls that this connection began run already (limits.background_per_connection)", own))
	}
	d.admit(c)
	d.waiting-- // background calls need no slot
	for l := range d.audience {
		if l.client == c.client {
			notify = append(notify, l.begun)
		}
	}
	return notify, nil
}

// backgroundCalls counts the running background calls, all and those of conn. The caller holds mu.
func (d *Dispatcher) backgroundCalls(conn string) (all, own int) {
	for _, c := range d.calls {
		if c.of == nil {
			continue
		}
		all++
		if c.conn == conn {
			own++
		}
	}
	return all, own
}

func (d *Dispatcher) liveOn(ctx context.Context, c *Call, inv tools.Invocation, said *message.Decision) {
	defer d.wg.Done()
	defer c.stop(nil)
	defer c.leaveWorkspace()
	defer c.escalation.Close()
	d.answer(c, d.executeSafely(ctx, c, inv, outcome{decision: said}))
	d.opt.Log.Info("background call ended", zap.String("call", c.ID), zap.String("begun_by", c.of.ID))
}

func (d *Dispatcher) executeSafely(ctx context.Context, c *Call, inv tools.Invocation, out outcome) (end outcome) {
	defer func() { end.decision = out.decision }()
	defer d.rescue(c, &end)
	return d.execute(ctx, c, inv, out)
}

// start returns how a call started, or why it did not.
func (c *Call) start() (*message.ToolStarted, *refusal) {
	for _, e := range c.Events(0) {
		switch e := e.(type) {
		case message.ToolStarted:
			return &e, nil
		case Final:
			if e.Return != nil && e.Return.ErrorType != nil {
				return nil, &refusal{*e.Return.ErrorType, strings.TrimPrefix(e.Return.Result, "Error: ")}
			}
		}
	}
	return nil, nil
}

func (c *Call) handle() *message.Background {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &message.Background{CallID: c.ID, PID: c.progress.pid, StartedAt: message.Instant(c.progress.startedAt)}
}

func (d *Dispatcher) backgroundOf(c *Call, ret *message.ToolReturn) *Call {
	if ret.Background == nil {
		return nil
	}
	return d.find(Key{c.client, c.req.AgentID, ret.Background.CallID})
}
