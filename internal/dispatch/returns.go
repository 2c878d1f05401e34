package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

// conclude journals the return. If that fails, the return is sent anyway, because every call is answered. fresh means
// that the return is new and belongs to this call.
func (d *Dispatcher) conclude(c *Call, out outcome) (f Final, fresh bool) {
	ret := d.makeReturn(c, out)
	var err error
	if c.known == nil && c.lost == nil {
		err = d.record(c, out, &ret) // may set c.known or c.lost
	}
	switch {
	case c.known != nil:
		return d.replay(c, *c.known), false
	case c.lost != nil:
		lost := outcome{refused: c.lost}
		ret := d.makeReturn(c, lost)
		if c.rec != 0 { // so that a repeat gets this return
			d.keepUnsaved(c.rec, unsaved{ret, journalOutcome(ret, lost)})
		}
		return Final{Return: &ret}, false
	case err != nil:
		d.opt.Log.Error("cannot journal a return", zap.String("call", c.ID), zap.Error(err))
		d.keepUnsaved(c.rec, unsaved{ret, journalOutcome(ret, out)})
	}
	return Final{Return: &ret, Background: out.started}, true
}

// record journals a return and sets its sequence number. A call that was not recorded yet is recorded with it, unless
// one with its id is (c.known) or none may be (c.lost).
func (d *Dispatcher) record(c *Call, out outcome, ret *message.ToolReturn) (err error) {
	o := journalOutcome(*ret, out)
	text := building(*ret)
	build := func(seq int64) (string, []byte, error) {
		ret.SeqID = seq
		return text(seq)
	}
	if c.rec != 0 {
		if _, err = d.opt.Journal.Finish(c.rec, o, build); err != nil {
			ret.SeqID = 0
		}
		return err
	}
	rec, fresh, err := d.opt.Journal.Answer(context.Background(), d.journalled(c), out.refused == nil, o, build)
	d.taken(c, rec, fresh, err)
	return nil
}

func (d *Dispatcher) makeReturn(c *Call, out outcome) message.ToolReturn {
	ret := message.ToolReturn{
		CallID: c.ID, AgentID: c.key.Agent, ToolName: c.asked.Name, RunID: optional(c.req.RunID), StepID: optional(c.req.StepID),
		Decision: out.decision, DurationMS: out.took.Milliseconds(), Cause: optional(out.cause), Background: out.started.handle(),
	}
	kind := message.ErrorType(out.result.Failure)
	if out.refused != nil {
		kind = out.refused.kind
		ret.Result = "Error: " + spool.Redact(out.refused.text, d.opt.Redact)
	} else {
		d.addResult(&ret, c, out.result)
		d.addOutput(&ret, out)
		if ret.Note = display.Mark(spool.Redact(c.note(), d.opt.Redact)); ret.Note != "" {
			ret.Result = ret.Note + "\n" + ret.Result
		}
		ret.Result = display.Mark(ret.Result)
	}
	ret.ErrorType = optional(kind)
	ret.Cancelled = kind == message.Cancelled || kind == message.Shutdown
	return ret.Complete()
}

func optional[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}

func (d *Dispatcher) addResult(ret *message.ToolReturn, c *Call, res tools.Result) {
	if !res.IsError {
		ret.Status = "success"
	}
	ret.TimedOut = res.Failure == tools.Timeout
	ret.Terminal, ret.Order = optional(res.Terminal), string(res.Order)
	for _, p := range res.Leftovers {
		p.Command = d.hidden(p.Command)
		ret.Leftovers = append(ret.Leftovers, message.Leftover(p))
	}
	for _, denial := range res.Denials {
		ret.Denials = append(ret.Denials, d.wireDenial(denial))
	}
	ret.Diff = optional(spool.Redact(res.Diff, d.opt.Redact))
	if res.File != nil {
		f := d.wireFile(*res.File)
		ret.File = &f
	}
	for _, f := range res.Files {
		ret.Files = append(ret.Files, d.wireFile(f))
	}
	if res.Sandbox != nil {
		held := d.sandboxOf(c, *res.Sandbox)
		ret.Sandbox = &held
	}
	if res.Exit != nil {
		ret.ExitCode, ret.Signal = &res.Exit.Code, optional(res.Exit.Signal)
	}
}

func (d *Dispatcher) addOutput(ret *message.ToolReturn, out outcome) {
	limit := d.opt.Limits.ReturnBytes
	head := spool.Redact(out.result.Text, d.opt.Redact)
	if out.capture == nil { // the call continues in the background
		ret.Result = head
		return
	}
	ret.StdoutBytes, ret.StderrBytes, _ = out.capture.Totals()
	if d.opt.Recorded != nil {
		d.opt.Recorded(min(ret.StdoutBytes+ret.StderrBytes, d.opt.Limits.SpoolBytes))
	}
	if ret.StdoutBytes+ret.StderrBytes == 0 {
		ret.Result = head
		if head == "" && ret.File == nil { // the content of a file is the output
			ret.Result = "(no output)"
		}
		return
	}
	stdout, cutOut := out.capture.Text(tools.Stdout, limit)
	stderr, cutErr := out.capture.Text(tools.Stderr, limit)
	ret.Stdout, ret.Stderr = []string{string(stdout)}, []string{string(stderr)}
	both, cut := out.capture.Text(tools.Combined, limit)
	ret.Truncated = cutOut || cutErr || cut
	text := spool.Redact(display.Clean(both), d.opt.Redact) // Clean may have joined the parts of a secret
	if head != "" {
		text = head + "\n" + text
	}
	ret.Result = text
}

func (d *Dispatcher) logReturn(c *Call, out outcome, ret *message.ToolReturn) {
	fields := []zap.Field{
		zap.String("call", c.ID), zap.String("client", c.client), zap.String("tool", c.tool),
		zap.String("status", ret.Status), zap.Duration("ran", out.took), zap.Duration("total", time.Since(c.born)),
		zap.Int64("stdout_bytes", ret.StdoutBytes), zap.Int64("stderr_bytes", ret.StderrBytes),
	}
	if ret.ErrorType != nil {
		fields = append(fields, zap.String("error_type", string(*ret.ErrorType)))
	}
	if ret.ExitCode != nil {
		fields = append(fields, zap.Int("exit_code", *ret.ExitCode))
	}
	if n := len(ret.Denials); n > 0 {
		fields = append(fields, zap.Int("denials", n))
	}
	if out.decision != nil {
		fields = append(fields, zap.String("decision", out.decision.Action), zap.String("by", out.decision.By), zap.String("rule", out.decision.Rule))
		if out.decision.Person != "" {
			fields = append(fields, zap.String("person", out.decision.Person), zap.Bool("widened", out.decision.Widened != nil))
		}
	}
	d.opt.Log.Info("call returned", fields...)
}

// hidden masks secrets in a text that a running program chose.
func (d *Dispatcher) hidden(text string) string {
	return string(redact.Mask([]byte(spool.Redact(text, d.opt.Redact))))
}

func (d *Dispatcher) wireFile(f tools.File) message.File {
	f.Path, f.From = spool.Redact(f.Path, d.opt.Redact), spool.Redact(f.From, d.opt.Redact)
	return message.File(f)
}

func (d *Dispatcher) sandboxOf(c *Call, r sandbox.Report) message.Sandbox {
	enforced := r.Enforced
	if enforced == nil {
		enforced = []string{}
	}
	return message.Sandbox{Profile: r.Profile, Enforced: enforced, Network: r.Network, Tier: r.Tier, Degraded: r.Degraded, Caches: r.Caches, Unwatched: d.hidden(r.Unwatched), Proxy: r.Proxy, Widened: c.added()}
}

const maxDenialText = 1024

// wireDenial redacts a denial, whose target may come from a program's output.
func (d *Dispatcher) wireDenial(n sandbox.Denial) message.Denial {
	show := func(text string) string {
		return redact.Short(display.Line(d.hidden(text)), maxDenialText)
	}
	return message.Denial{
		Kind: string(n.Kind), Op: n.Op, Target: show(n.Target), Exact: n.Exact, Setting: show(n.Setting), Hint: show(n.Hint),
	}
}

const (
	saveEvery  = 5 * time.Minute
	maxUnsaved = 1000 // maximum number of returns
)

// unsaved is a return that could not be journaled, for instance because the disk was full.
type unsaved struct {
	ret     message.ToolReturn
	outcome journal.Outcome
}

// SaveReturns journals unsaved returns, at once and periodically until ctx ends.
func (d *Dispatcher) SaveReturns(ctx context.Context) {
	tick := time.Tick(saveEvery)
	for {
		d.saveAll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}

func (d *Dispatcher) keepUnsaved(k journal.Key, u unsaved) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.unsaved) < maxUnsaved {
		d.unsaved[k] = u
	}
}

func (d *Dispatcher) saveAll(ctx context.Context) {
	d.mu.Lock()
	keys := slices.Collect(maps.Keys(d.unsaved))
	d.mu.Unlock()
	for _, k := range keys {
		if _, ok := d.save(k); !ok && ctx.Err() != nil {
			break
		}
	}
	d.mu.Lock()
	left := len(d.unsaved)
	d.mu.Unlock()
	if left > 0 {
		d.opt.Log.Warn("returns are still not in the journal", zap.Int("returns", left))
	}
}

func (d *Dispatcher) save(k journal.Key) (*message.ToolReturn, bool) {
	d.mu.Lock()
	u, ok := d.unsaved[k]
	d.mu.Unlock()
	if !ok {
		return nil, false
	}
	seq, err := d.opt.Journal.Finish(k, u.outcome, building(u.ret))
	recorded := errors.Is(err, journal.ErrState) // recorded earlier, or by another daemon
	if err != nil && !recorded {
		return &u.ret, false
	}
	u.ret.SeqID = seq
	d.mu.Lock()
	delete(d.unsaved, k)
	d.mu.Unlock()
	if recorded {
		return nil, true // the journaled return takes precedence
	}
	return &u.ret, true
}

// withoutReturn answers a repeated call that has no journaled return.
func (d *Dispatcher) withoutReturn(c *Call, rec journal.Record) Final {
	if ret := d.returnOf(rec); ret != nil {
		ret.Replayed = true
		return Final{Return: ret, Background: d.backgroundOf(c, ret)}
	}
	why := "is being run by another toold process on this machine; ask that one"
	if rec.Daemon == d.opt.Journal.Daemon() {
		why = "has ended, but its return could not be written to the journal and is lost. It does not run again: look at what it changed, and use a new id"
	}
	return Final{Err: about(c.ID, message.DuplicateToolCall.Errorf("tool_call_id %q %s", c.ID, why))}
}
