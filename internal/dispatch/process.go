package dispatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
)

// outcome is how a call ended, before it is put into words.
type outcome struct {
	refused  *refusal // nothing ran
	result   tools.Result
	capture  *tools.Capture
	decision *message.Decision
	took     time.Duration
	cause    message.Cause // of the end of a call that did not end by itself
	started  *Call         // runs on in the background
}

// live takes one call through its life. It returns when the call's return is in
// the journal and told to its watchers.
func (d *Dispatcher) live(ctx context.Context, c *Call, refused *refusal) {
	defer d.wg.Done()
	defer c.stop(nil)
	final := d.answer(ctx, c, refused)
	// A repeat from here on is answered from the journal, as a replay.
	d.forget(c)
	c.emit(final)
}

// answer brings the call to its end.
func (d *Dispatcher) answer(ctx context.Context, c *Call, refused *refusal) Final {
	rec, fresh, err := d.opt.Journal.Receive(context.WithoutCancel(ctx), d.journalled(c))
	if err != nil {
		d.notWaiting()
		d.opt.Log.Error("cannot journal a call", zap.String("call", c.ID), zap.Error(err))
		return Final{Return: d.unrecorded(c, refusal{message.InternalError, "the call cannot be journalled, so nothing ran: " + err.Error() + ". Ask the operator to look at the state directory (toold doctor); the same id may be sent again then"})}
	}
	c.rec = rec.Key
	if !fresh {
		d.notWaiting()
		return d.replay(c, rec)
	}
	if refused != nil {
		d.notWaiting()
		return d.conclude(c, outcome{refused: refused, cause: causeOf(ctx, refused.kind)})
	}
	return d.conclude(c, d.process(ctx, c))
}

// replay answers a call that the journal knows.
func (d *Dispatcher) replay(c *Call, rec journal.Record) Final {
	if rec.ArgsHash != c.hash {
		e := message.Errorf(message.DuplicateToolCall, "tool_call_id %q belongs to a call with other arguments; use a new id for a new call", c.ID)
		e.CallID = c.ID
		return Final{Err: e}
	}
	if len(rec.Result) == 0 {
		return d.withoutReturn(c, rec)
	}
	ret, err := storedReturn(rec.Result)
	if err != nil {
		e := message.Errorf(message.InternalError, "the recorded return of tool call %q cannot be read: %v", c.ID, err)
		e.CallID = c.ID
		return Final{Err: e}
	}
	ret.Replayed = true
	return Final{Return: ret, Background: d.backgroundOf(c, ret)}
}

// process judges the call and runs it. A panic of a tool is an internal error
// of this one call.
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
	inv, refused := d.build(ctx, c)
	if refused == nil {
		out.decision, refused = d.authorise(ctx, c, inv)
	}
	if refused == nil {
		var leave func()
		if leave, refused = d.awaitPlace(ctx, c); refused == nil {
			defer leave()
			started()
			refused = d.intend(ctx, c, out.decision)
		}
	}
	switch {
	case refused != nil:
		out.refused, out.cause = refused, causeOf(ctx, refused.kind)
		return out
	case inBackground(inv):
		return d.background(ctx, c, inv, out)
	}
	return d.execute(ctx, c, inv, out)
}

// rescue makes an outcome of a panic.
func (d *Dispatcher) rescue(c *Call, out *outcome) {
	p := recover()
	if p == nil {
		return
	}
	ref := message.NewID("fault")
	d.opt.Log.Error("a call panicked", zap.String("call", c.ID), zap.String("reference", ref), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	out.refused = &refusal{message.InternalError, "a fault in toold ended the call; report it with the reference " + ref}
}

// awaitPlace waits for a place among the running calls, and tells the watchers
// how far the call is from it. The caller leaves the place.
func (d *Dispatcher) awaitPlace(ctx context.Context, c *Call) (leave func(), refused *refusal) {
	t := d.places.enter(c.conn)
	leave = func() { d.places.leave(t) }
	select {
	case <-t.ready:
		return leave, nil
	default:
	}
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for told := 0; ; {
		if n := d.places.place(t); n != told && n > 0 {
			told = n
			c.proceed(message.CallQueued, func(p *progress) { p.position = n })
			c.emit(message.ToolQueued{MessageType: "tool_queued", CallID: c.ID, Position: n})
		}
		select {
		case <-t.ready:
			return leave, nil
		case <-ctx.Done():
			leave()
			return nil, stopped(ctx)
		case <-again.C:
		}
	}
}

// intend makes the decision and the intent to run durable. Only then may the call
// run.
func (d *Dispatcher) intend(ctx context.Context, c *Call, said *message.Decision) *refusal {
	if err := d.opt.Journal.Intend(context.WithoutCancel(ctx), c.rec, journalDecision(said)); err != nil {
		return &refusal{message.InternalError, "the decision cannot be journalled, so nothing ran: " + err.Error()}
	}
	return nil
}

// build parses the call into an invocation. It waits while as many calls are
// parsed as may be at once, and gives up waiting when ctx ends.
func (d *Dispatcher) build(ctx context.Context, c *Call) (tools.Invocation, *refusal) {
	select {
	case d.builds <- struct{}{}:
		defer func() { <-d.builds }()
	case <-ctx.Done():
		return nil, stopped(ctx)
	}
	tool, _, ok := d.opt.Registry.Lookup(c.asked.Name)
	if c.asked.Invalid != "" {
		return nil, &refusal{message.InvalidArguments, c.asked.Invalid}
	}
	if !ok {
		return nil, &refusal{message.UnknownTool, fmt.Sprintf("unknown tool %q; the tools are %s", c.asked.Name, toolNames(d.opt.Registry))}
	}
	inv, err := tool.Build(c.asked.Arguments)
	var bad *tools.ArgumentError
	switch {
	case errors.As(err, &bad):
		return nil, &refusal{message.InvalidArguments, bad.Error()}
	case err != nil:
		return nil, &refusal{message.InvalidArguments, "cannot prepare the call: " + err.Error()}
	case inBackground(inv) && d.opt.Limits.Background == 0:
		return nil, &refusal{message.InvalidArguments, "background: this toold runs nothing on after the return (limits.background_calls is 0, or it was started for one call only: start one with `toold serve`). Run it without background"}
	}
	c.proceed(message.CallReceived, func(p *progress) { p.preview = beginning(inv.Preview().Text) })
	return inv, nil
}

// execute runs the invocation. Everything before it has been journalled.
func (d *Dispatcher) execute(ctx context.Context, c *Call, inv tools.Invocation, out outcome) outcome {
	dir := filepath.Join(d.opt.SpoolDir, strconv.FormatInt(int64(c.rec), 10))
	out.capture = tools.NewCapture(tools.CaptureOptions{Dir: dir, SpoolBytes: d.opt.Limits.SpoolBytes, Redact: d.opt.Redact})
	// A folder of this name is of another journal: its output is not this call's.
	if err := os.RemoveAll(dir); err != nil {
		d.opt.Log.Warn("cannot remove old output", zap.String("call", c.ID), zap.Error(err))
	}
	c.setCapture(out.capture)
	begin := time.Now()
	c.proceed(message.CallRunning, func(p *progress) { p.startedAt = begin })
	out.result = inv.Execute(ctx, tools.IO{
		Output: func(s tools.Stream, p []byte) {
			out.capture.Write(s, p)
			c.wakeAll()
		},
		Started: func(s tools.Started) { d.started(ctx, c, s, dir) },
		Waiting: func(w tools.Waiting) {
			c.emit(message.NewWaitingForInput(c.ID, w.Waits, w.Kind, w.Since, w.PID, w.Command))
		},
		Input:   c.input.pieces,
		Profile: c.profile,
	})
	out.took = time.Since(begin)
	c.input.close()
	out.capture.Close()
	out.result = explained(ctx, out.result)
	out.cause = causeOf(ctx, message.ErrorType(out.result.Failure))
	return out
}

// started records the process of the call. If that fails the call goes on: its
// intent is journalled already.
func (d *Dispatcher) started(ctx context.Context, c *Call, s tools.Started, dir string) {
	if err := d.opt.Journal.Started(context.WithoutCancel(ctx), c.rec, s.Identity, dir); err != nil {
		d.opt.Log.Error("cannot journal a started process", zap.String("call", c.ID), zap.Error(err))
	}
	c.proceed(message.CallRunning, func(p *progress) { p.pid = s.PID; c.hasBegun() })
	c.emit(message.ToolStarted{MessageType: "tool_started", CallID: c.ID, PID: s.PID, Terminal: s.Terminal, Sandbox: wireSandbox(s.Sandbox)})
}
