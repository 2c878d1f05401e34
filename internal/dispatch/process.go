package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
	"github.com/toold/toold/tools/spool"
)

type outcome struct {
	refused  *refusal // set if nothing ran
	result   tools.Result
	capture  *spool.Capture
	decision *message.Decision
	took     time.Duration
	cause    string // why the call was stopped
	started  *Call  // background call
}

// live processes a call until its return is journaled and sent.
func (d *Dispatcher) live(ctx context.Context, c *Call, refused *refusal) {
	defer d.wg.Done()
	defer c.stop(nil)
	defer c.leaveWorkspace()
	defer func() { c.escalation.Close() }()
	if c.again == nil {
		refused = cmp.Or(d.findNamesake(c), refused)
	}
	if refused != nil {
		d.notWaiting()
		d.answer(c, outcome{refused: refused, cause: causeOf(ctx, refused.kind)})
		return
	}
	out := d.process(ctx, c)
	if out.refused != nil && out.refused.kind == message.Shutdown && c.kept {
		d.forget(c)
		c.emit(Final{Kept: true})
		return
	}
	errors.As(context.Cause(ctx), &c.cancel)
	d.answer(c, out)
}

func (d *Dispatcher) answer(c *Call, out outcome) {
	begin := time.Now()
	final, fresh := d.conclude(c, out)
	c.stepped(StepRecord, begin)
	if c.earlyCancel != "" {
		d.takeEarlyCancel(c)
	}
	// From here on repeats are answered from the journal.
	d.forget(c)
	hasEnded := final.Return != nil && final.Return.Ended()
	isBefore := c.req.Item != "" && c.ID != partID(c.req.Item, c.parts)
	if isBefore && c.cancel != nil && hasEnded { // cancelled too late
		d.CancelEarly(context.Background(), c.client, &c.key.Agent, c.req.Item) // cancels the remaining parts
	}
	c.emit(final)
	runtime.Gosched() // lets the goroutine run that writes it to the client
	if fresh {
		d.logReturn(c, out, final.Return) // after emit, because the client does not wait for it
	}
}

// process decides and runs the call. A panic of a tool becomes an internal error of this call.
func (d *Dispatcher) process(ctx context.Context, c *Call) (out outcome) {
	waits := true
	started := func() {
		if waits {
			waits = false
			d.notWaiting()
		}
	}
	defer started()
	defer d.rescue(c, &out)
	inv, refused := d.parse(ctx, c)
	var leave func()
	if refused == nil {
		inv, out.decision, leave, refused = d.admitted(ctx, c, inv)
	}
	if refused == nil {
		defer leave()
		started()
		ready, drop := d.prepare(ctx, c, inv)
		defer drop()
		refused = d.begin(c, inv, out.decision)
		if ready(); refused == nil && ctx.Err() != nil {
			refused = stopped(ctx)
		}
	}
	switch {
	case refused != nil:
		out.refused, out.cause = refused, causeOf(ctx, refused.kind)
		return out
	case inv.Traits().Background:
		return d.background(ctx, c, inv, out)
	}
	return d.execute(ctx, c, inv, out)
}

// admitted decides the call and waits for its client and for a slot, which the caller releases by leave. It decides again
// if the policy changed meanwhile. It returns what is to run, which a person may have edited.
func (d *Dispatcher) admitted(ctx context.Context, c *Call, inv tools.Invocation) (_ tools.Invocation, said *message.Decision, leave func(), refused *refusal) {
	for {
		decided := d.rulesFor(c)
		said, refused = d.authorise(ctx, c, inv)
		if c.edited != nil {
			inv = c.edited
			c.proceed(message.CallReceived, func(p *progress) { p.preview = beginning(inv.Text()) })
		}
		if refused == nil {
			refused = c.awaitClient(ctx)
		}
		if refused == nil {
			leave, refused = d.awaitSlot(ctx, c)
		}
		if refused != nil {
			return inv, said, nil, refused
		}
		if path := c.firstChanged(); path != "" {
			leave()
			said, refused = replaced(said, said.Person, path)
			return inv, said, nil, refused
		}
		if d.isRevoked(c) {
			leave()
			return inv, said, nil, &refusal{message.NotAuthorized, "the token " + c.client + " was revoked while the call waited; nothing ran"}
		}
		if !d.isOutdated(c, decided, said, inv) {
			return inv, said, leave, nil
		}
		leave()
	}
}

// isRevoked reports whether the client has lost its token while the call waited.
func (d *Dispatcher) isRevoked(c *Call) bool {
	waited := slices.ContainsFunc(c.steps, func(s Step) bool { return s.Name == StepAsk || s.Name == StepQueue })
	return waited && d.opt.Known != nil && !d.opt.Known(c.client)
}

// isOutdated reports whether a call has to be decided again, because its policy was replaced. An approval counts unless
// the new policy denies the call.
func (d *Dispatcher) isOutdated(c *Call, decided *rules, said *message.Decision, inv tools.Invocation) bool {
	select {
	case <-decided.replaced:
		return said.By == "policy" || d.rulesFor(c).policy.Decide(inv.Effects()).Action == policy.Deny
	default:
		return false
	}
}

// prepare lets an invocation prepare while the journal records the intent. ready waits for the preparation and repeats
// its panic. drop waits and discards what was prepared, unless the call has used it.
func (d *Dispatcher) prepare(ctx context.Context, c *Call, inv tools.Invocation) (ready, drop func()) {
	p, ok := inv.(tools.Preparing)
	if !ok || inv.Traits().Background {
		return func() {}, func() {}
	}
	io := d.newIO(c)
	var preparing sync.WaitGroup
	var panicked any
	// Ends when the preparation does; drop waits.
	preparing.Go(func() {
		defer func() {
			if panicked = recover(); panicked != nil {
				panicked = fmt.Sprintf("%v, at %s", panicked, debug.Stack())
			}
		}()
		p.Prepare(ctx, io)
	})
	ready = func() {
		if preparing.Wait(); panicked != nil {
			panic(panicked)
		}
	}
	return ready, func() { preparing.Wait(); p.Drop() }
}

func (d *Dispatcher) rescue(c *Call, out *outcome) {
	p := recover()
	if p == nil {
		return
	}
	ref := message.NewID("fault")
	d.opt.Log.Error("a call panicked", zap.String("call", c.ID), zap.String("reference", ref), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	out.refused = &refusal{message.InternalError, "a fault in toold ended the call; report it with the reference " + ref}
}

// awaitSlot waits for a slot and notifies watchers of the call's position. The caller calls leave to release the slot.
func (d *Dispatcher) awaitSlot(ctx context.Context, c *Call) (leave func(), refused *refusal) {
	t := d.slots.enter(c.conn)
	leave = func() { d.slots.leave(t) }
	select {
	case <-t.ready:
		return d.takeSlot(ctx, leave)
	default:
	}
	if refused = d.receive(c); refused != nil {
		leave()
		return nil, refused
	}
	defer c.stepped(StepQueue, time.Now())
	again := time.Tick(time.Second)
	for sent := 0; ; {
		if n := d.slots.position(t); n != sent && n > 0 {
			sent = n
			c.proceed(message.CallQueued, func(p *progress) { p.position = n })
			c.emit(message.ToolQueued{MessageType: "tool_queued", CallID: c.ID, AgentID: c.key.Agent, Position: n})
		}
		select {
		case <-t.ready:
			return d.takeSlot(ctx, leave)
		case <-ctx.Done():
			leave()
			return nil, stopped(ctx)
		case <-again:
		}
	}
}

// takeSlot keeps the slot if the call is not stopped. Shutdown stops calls one by one under mu. A call that gets the
// slot of a stopped one waits here until all are stopped, and so does not start.
func (d *Dispatcher) takeSlot(ctx context.Context, leave func()) (func(), *refusal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ctx.Err() == nil {
		return leave, nil
	}
	leave()
	return nil, stopped(ctx)
}

func (d *Dispatcher) parse(ctx context.Context, c *Call) (tools.Invocation, *refusal) {
	if refused := d.enter(ctx, c); refused != nil {
		return nil, refused
	}
	if len(c.asked.Arguments) > longArguments {
		if refused := d.receive(c); refused != nil {
			return nil, refused
		}
	}
	inv, refused := d.build(ctx, c.workspace, c.asked)
	if refused == nil && c.again != nil && inv.Traits().Elsewhere { // the program that would execute it is gone
		refused = notStarted()
	}
	if refused == nil {
		refused = d.holdEffects(c, inv.Effects())
	}
	if refused == nil {
		c.elsewhere = inv.Traits().Elsewhere
		c.proceed(message.CallReceived, func(p *progress) { p.preview = beginning(inv.Text()) })
	}
	return inv, refused
}

// build builds an invocation when one of the builds slots is free. It records nothing.
func (d *Dispatcher) build(ctx context.Context, w *Workspace, asked message.ToolCall) (tools.Invocation, *refusal) {
	select {
	case d.builds <- struct{}{}:
		defer func() { <-d.builds }()
	case <-ctx.Done():
		return nil, stopped(ctx)
	}
	tool, _, ok := w.opt.Registry.Lookup(asked.Name)
	if asked.Invalid != "" {
		return nil, &refusal{message.InvalidArguments, asked.Invalid}
	}
	if !ok {
		return nil, &refusal{message.UnknownTool, d.opt.Registry.Unknown(asked.Name)}
	}
	inv, err := tool.Build(asked.Arguments)
	var bad *argument.Error
	switch {
	case errors.As(err, &bad):
		return nil, &refusal{message.InvalidArguments, bad.Error()}
	case err != nil:
		return nil, &refusal{message.InvalidArguments, "cannot prepare the call: " + err.Error()}
	case inv.Traits().Background && d.opt.Limits.Background == 0:
		return nil, &refusal{message.InvalidArguments, "background: this toold runs nothing on after the return (limits.background_calls is 0, or it was started for one call only: start one with `toold serve`). Run it without background"}
	}
	return inv, nil
}

// spoolDir returns the directory for the output of a call below the present state directory, which may have moved.
func (d *Dispatcher) spoolDir(call journal.Key) string {
	return filepath.Join(d.opt.SpoolDir, strconv.FormatInt(int64(call), 10))
}

// spool is spoolDir, but removes old output. It returns "" if the call is not recorded.
func (d *Dispatcher) spool(c *Call) (dir string) {
	if c.rec == 0 {
		return ""
	}
	dir = d.spoolDir(c.rec)
	// An existing directory is a remnant of another journal.
	if err := os.RemoveAll(dir); err != nil {
		d.opt.Log.Warn("cannot remove old output", zap.String("call", c.ID), zap.Error(err))
	}
	return dir
}

// newIO returns the sandbox and the policy of a call for its invocation.
func (d *Dispatcher) newIO(c *Call) tools.IO {
	return tools.IO{Profile: c.profile, Limit: c.limit, Escalation: c.escalation, Approved: c.approved, Opened: c.opened, Policy: d.rulesFor(c).policy}
}

// execute runs the invocation. Everything up to the intent has been journaled.
func (d *Dispatcher) execute(ctx context.Context, c *Call, inv tools.Invocation, out outcome) outcome {
	dir := d.spool(c)
	out.capture = spool.NewCapture(spool.Options{Dir: dir, SpoolBytes: d.opt.Limits.SpoolBytes, Redact: d.opt.Redact, Call: c.ID})
	c.setCapture(out.capture)
	begin := time.Now()
	hosts := d.connections(c, inv)
	loopback, lends, giveBack := d.loopback(c)
	defer giveBack()
	c.proceed(message.CallRunning, func(p *progress) { p.startedAt = begin })
	io := d.newIO(c)
	io.Output = func(s tools.Stream, p []byte) {
		out.capture.Write(s, p)
		c.wakeAll()
	}
	io.Starting = func(process string) error { return d.starting(c, process, dir) }
	io.Started = func(s tools.Started) { d.started(c, s) }
	io.Waiting = func(w tools.Waiting) {
		c.emit(message.WaitingForInput{
			MessageType: "waiting_for_input", CallID: c.ID, AgentID: c.key.Agent, Waiting: w.Waits, Kind: w.Kind,
			Since: w.Since.UTC().Format(time.RFC3339Nano), PID: w.Process.PID, Command: d.hidden(w.Process.Command),
		})
	}
	io.Input = c.input.pieces
	io.Connect, io.Revoked = hosts.decide, hosts.revoked
	io.Loopback, io.Lends = loopback, lends
	io.Judge, io.Calls = d.judge(c, out.decision), others{d, c}
	out.result = d.run(ctx, c, inv, io)
	out.took = time.Since(begin)
	c.stepped(StepRun, begin)
	c.input.close()
	out.capture.Close()
	out.result = explained(ctx, out.result)
	out.cause = causeOf(ctx, message.ErrorType(out.result.Failure))
	return out
}

// run runs an invocation. It first records that the call may have effects, unless the invocation does so itself.
func (d *Dispatcher) run(ctx context.Context, c *Call, inv tools.Invocation, io tools.IO) tools.Result {
	if _, itself := inv.(tools.Preparing); !itself && c.rec != 0 {
		if err := d.starting(c, "", ""); err != nil {
			return tools.Result{Text: fmt.Sprintf("Nothing ran: %v.", err), IsError: true, Failure: tools.Internal}
		}
	}
	return inv.Execute(ctx, io)
}

// starting records that a call and its parent may have effects from now on.
func (d *Dispatcher) starting(c *Call, process, dir string) (err error) {
	if c.of != nil {
		err = d.opt.Journal.Start(c.of.rec, "", "")
	}
	if err == nil {
		err = d.opt.Journal.Start(c.rec, process, dir)
	}
	if err != nil {
		return fmt.Errorf("%w, so nothing ran", err)
	}
	return nil
}

func (d *Dispatcher) started(c *Call, s tools.Started) {
	c.proceed(message.CallRunning, func(p *progress) { p.pid = s.PID })
	c.emit(message.ToolStarted{MessageType: "tool_started", CallID: c.ID, AgentID: c.key.Agent, PID: s.PID, Terminal: s.Terminal, Sandbox: d.sandboxOf(c, s.Sandbox)})
}
