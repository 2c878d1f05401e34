package dispatch

import (
	"context"
	"errors"
	"fmt"
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
}

// live takes one call through its life. It returns when the call's return is in
// the journal and told to its watchers.
func (d *Dispatcher) live(ctx context.Context, c *Call, tooMany string) {
	defer d.wg.Done()
	defer c.stop(nil)
	final := d.answer(ctx, c, tooMany)
	// A repeat from here on is answered from the journal, as a replay.
	d.forget(c)
	c.emit(final)
}

// answer brings the call to its end.
func (d *Dispatcher) answer(ctx context.Context, c *Call, tooMany string) Final {
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
	if tooMany != "" {
		d.notWaiting()
		return d.conclude(c, outcome{refused: &refusal{message.TooManyCalls, tooMany + "; nothing ran. Wait for returns before you send more, and send this one again under a new id"}})
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
		e := message.Errorf(message.DuplicateToolCall, "tool call %q is being run by another toold process on this machine; ask that one", c.ID)
		e.CallID = c.ID
		return Final{Err: e}
	}
	ret, err := storedReturn(rec.Result)
	if err != nil {
		e := message.Errorf(message.InternalError, "the recorded return of tool call %q cannot be read: %v", c.ID, err)
		e.CallID = c.ID
		return Final{Err: e}
	}
	ret.Replayed = true
	return Final{Return: ret}
}

// process judges the call and runs it. A panic of a tool is an internal error
// of this one call.
func (d *Dispatcher) process(ctx context.Context, c *Call) (out outcome) {
	waits := true
	defer func() {
		if waits {
			d.notWaiting()
		}
		if p := recover(); p != nil {
			ref := message.NewID("fault")
			d.opt.Log.Error("a call panicked", zap.String("call", c.ID), zap.String("reference", ref), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			out.refused = &refusal{message.InternalError, "a fault in toold ended the call; report it with the reference " + ref}
		}
	}()
	inv, refused := d.build(ctx, c)
	if refused != nil {
		out.refused = refused
		return out
	}
	out.decision, refused = d.authorise(ctx, c, inv)
	if refused != nil {
		out.refused = refused
		return out
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		out.refused = stopped(ctx)
		return out
	}
	waits = false
	d.notWaiting()
	if err := d.opt.Journal.Intend(context.WithoutCancel(ctx), c.rec, journalDecision(out.decision)); err != nil {
		out.refused = &refusal{message.InternalError, "the decision cannot be journalled, so nothing ran: " + err.Error()}
		return out
	}
	return d.execute(ctx, c, inv, out)
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
	}
	return inv, nil
}

// execute runs the invocation. Everything before it has been journalled.
func (d *Dispatcher) execute(ctx context.Context, c *Call, inv tools.Invocation, out outcome) outcome {
	dir := filepath.Join(d.opt.SpoolDir, strconv.FormatInt(int64(c.rec), 10))
	out.capture = tools.NewCapture(tools.CaptureOptions{Dir: dir, SpoolBytes: d.opt.Limits.SpoolBytes, Redact: d.opt.Redact})
	c.setCapture(out.capture)
	begin := time.Now()
	out.result = inv.Execute(ctx, tools.IO{
		Output: func(s tools.Stream, p []byte) {
			out.capture.Write(s, p)
			c.wakeAll()
		},
		Started: func(s tools.Started) { d.started(ctx, c, s, dir) },
		Input:   c.input,
		Profile: c.profile,
	})
	out.took = time.Since(begin)
	out.capture.Close()
	if out.result.Failure == tools.Cancelled {
		out.result.Failure = tools.Failure(stopped(ctx).kind)
	}
	return out
}

// started records the process of the call. If that fails the call goes on: its
// intent is journalled already.
func (d *Dispatcher) started(ctx context.Context, c *Call, s tools.Started, dir string) {
	if err := d.opt.Journal.Started(context.WithoutCancel(ctx), c.rec, s.Identity, dir); err != nil {
		d.opt.Log.Error("cannot journal a started process", zap.String("call", c.ID), zap.Error(err))
	}
	c.emit(message.ToolStarted{MessageType: "tool_started", CallID: c.ID, PID: s.PID, Terminal: s.Terminal, Sandbox: wireSandbox(s.Sandbox)})
}

// stopped says in words why ctx ended a call that did not run.
func stopped(ctx context.Context) *refusal {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errShutdown):
		return &refusal{message.Shutdown, "toold was stopped before the call had ended. Send it again under a new id when toold is back"}
	case errors.Is(cause, errClientGone):
		return &refusal{message.Cancelled, "the client went away and did not come back in time"}
	default:
		return &refusal{message.Cancelled, "the call was cancelled"}
	}
}
