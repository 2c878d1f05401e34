package dispatch

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// Limits of a Look: its duration, and its number of reads, which its return lists.
const (
	lookTime  = time.Second
	lookLines = 500
)

// A Look is a series of reads recorded as one call; each read is decided separately. Its intent is durable before
// anything is sent. It ends with Close, after lookTime, or after lookLines reads.
type Look struct {
	d       *Dispatcher
	call    *Call
	closing chan struct{}

	mu    sync.Mutex
	shut  bool
	busy  sync.WaitGroup // one for each read
	lines []string
	count int // number of reads
}

// Errors of Look.At.
var (
	// ErrLookOver means that the series has ended. The caller may begin another.
	ErrLookOver = errors.New("the series of reads has ended")
	// ErrAsks means that a person must decide. The caller may submit the read as a call.
	ErrAsks = errors.New("a person has to decide on this read")
)

// A LookError says why a path was not read.
type LookError struct{ Text string }

func (e *LookError) Error() string { return e.Text }

// Look begins a series with the call of its first read, which is not executed.
func (d *Dispatcher) Look(first Submission) (*Look, error) {
	c, ctx := d.newCall(first)
	d.mu.Lock()
	if d.stopping {
		d.mu.Unlock()
		return nil, &LookError{"toold is stopping; nothing was read"}
	}
	if full := d.crowded(); full != "" {
		d.mu.Unlock()
		return nil, &LookError{full + "; nothing was read"}
	}
	d.admit(c)
	d.mu.Unlock()
	d.notWaiting()
	l := &Look{d: d, call: c, closing: make(chan struct{})}
	refused := d.enter(ctx, c)
	said := &message.Decision{Action: policy.Allow.String(), By: "policy", Reason: "a series of reads, each of which is judged by itself"}
	if refused == nil {
		rec, fresh, err := d.opt.Journal.Begin(context.Background(), d.journalled(c), journalDecision(said))
		refused = d.taken(c, rec, fresh, err)
	}
	if refused == nil {
		if err := d.opt.Journal.Start(c.rec, "", ""); err != nil { // so that it counts as executed after a crash
			refused = &refusal{message.InternalError, "the start of the reads cannot be journalled, so nothing was read: " + err.Error() + ". Ask the operator to look at the state directory (toold doctor)"}
		}
	}
	if refused != nil {
		defer d.wg.Done()
		defer c.leaveWorkspace()
		l.shut = true
		d.answer(c, outcome{refused: refused, cause: causeOf(ctx, refused.kind)})
		return nil, &LookError{refused.text}
	}
	c.proceed(message.CallRunning, func(p *progress) { p.preview = "a series of reads"; p.startedAt = time.Now() })
	// Ends with Close, after lookTime, or when cancelled; Shutdown waits.
	go l.live(ctx, said)
	return l, nil
}

func (l *Look) live(ctx context.Context, said *message.Decision) {
	defer l.d.wg.Done()
	defer l.call.stop(nil)
	defer l.call.leaveWorkspace()
	select {
	case <-l.closing:
	case <-time.After(lookTime):
	case <-ctx.Done():
	}
	l.mu.Lock()
	l.shut = true
	l.mu.Unlock()
	l.busy.Wait()
	l.mu.Lock()
	text := strings.Join(l.lines, "\n")
	l.mu.Unlock()
	l.d.answer(l.call, outcome{decision: said, took: time.Since(l.call.born), result: tools.Result{Text: text}})
}

// Close ends the series. It may be called repeatedly.
func (l *Look) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	closeOnce(l.closing)
	l.shut = true
}

// Over reports whether the series has ended.
func (l *Look) Over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shut
}

// At executes one read-only call of the client. The error is ErrLookOver, ErrAsks or a *LookError.
func (l *Look) At(sub Submission) (tools.Result, error) {
	if !l.enter() {
		return tools.Result{}, ErrLookOver
	}
	defer l.busy.Done()
	sub.Client = l.call.client
	c, ctx := l.d.newCall(sub)
	defer c.stop(nil)
	defer c.leaveWorkspace()
	var inv tools.Invocation
	refused := l.d.enter(ctx, c)
	if refused == nil {
		inv, refused = l.d.build(ctx, c.workspace, sub.Call)
	}
	if refused == nil && !inv.Traits().ReadOnly {
		refused = &refusal{message.InvalidArguments, sub.Call.Name + " does more than read"}
	}
	if refused != nil {
		return tools.Result{}, l.note(inv, "refused", &LookError{refused.text})
	}
	v := l.d.rulesFor(c).policy.Decide(inv.Effects())
	switch v.Action {
	case policy.Allow:
	case policy.Ask:
		return tools.Result{}, l.note(inv, "not done, rule "+v.Rule+" asks", ErrAsks)
	default:
		return tools.Result{}, l.note(inv, "denied by rule "+v.Rule, &LookError{deniedByPolicy(v).text})
	}
	c.profile = v.Profile
	io := l.d.newIO(c)
	io.Judge = l.d.judge(c, &message.Decision{})
	result := inv.Execute(ctx, io)
	if result.IsError {
		return result, l.note(inv, "failed", &LookError{result.Text})
	}
	return result, l.note(inv, "done", nil)
}

func (l *Look) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == lookLines {
		closeOnce(l.closing)
		l.shut = true
	}
	if l.shut {
		return false
	}
	l.count++
	l.busy.Add(1)
	return true
}

func (l *Look) note(inv tools.Invocation, came string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	what := "a read"
	if inv != nil {
		what = inv.Text()
	}
	l.lines = append(l.lines, what+": "+came)
	return err
}
