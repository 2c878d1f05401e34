package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toold/toold/sandbox"
)

const (
	// quietFor is how long no call may have begun or ended before a shell is
	// started: the answer goes out first, and short calls in a row, which could not
	// wait for a shell anyhow, keep the processors.
	quietFor = 5 * time.Millisecond

	// renewEvery is how old a waiting shell may get, and at most twice that.
	renewEvery = 5 * time.Minute

	// Where a shell cannot start or wait, that is tried again after tryAgain, then after twice as
	// long, and so on up to tryAgainMost.
	tryAgain     = time.Minute
	tryAgainMost = time.Hour
)

// Pool runs commands as Run does, but keeps a few shells started, each in its own
// sandbox, waiting for the one script it will run. Such a shell saves a call the
// start of the sandbox and of bash; what it runs and shows is that of a fresh one.
//
// A waiting shell is for commands that differ from the last one in nothing but
// script, times and writers. A command for which none waits is started by Run at
// once. Shells are started between calls, renewed when they get old, and
// never used twice or when a folder, a mount or a hidden file has changed under
// them.
//
// A nil Pool keeps none. The methods may be called from several goroutines.
type Pool struct {
	size   int
	failed func(error)
	wake   chan struct{} // one signal for the keeper
	stop   context.CancelFunc
	work   sync.WaitGroup // the keeper, and helpers on their way out
	proven bool           // a shell has been able to wait; the keeper's

	reports reportPool
	counts  counts
	slots   sandbox.Slots

	mu     sync.Mutex
	ready  []*readyShell      // oldest first
	empty  []*sandbox.Process // helpers whose calls have ended, oldest first
	shape  *Command           // of the last call
	last   time.Time          // when a call began or ended
	epoch  int                // counts Flush
	closed bool
}

// counts are those of PoolCounts that only grow.
type counts struct{ hits, started, ahead atomic.Int64 }

// NewPool returns a pool that keeps at most size shells. Close ends it. failed, which may be nil, is
// called with why a shell could not wait, or not be used although nothing had changed under it.
func NewPool(size int, failed func(error)) *Pool {
	ctx, stop := context.WithCancel(context.Background())
	p := &Pool{size: size, failed: failed, wake: make(chan struct{}, 1), stop: stop}
	if size > 0 {
		// Ends with Close.
		p.work.Go(func() { p.keep(ctx, p.provide, tryAgain) })
	}
	return p
}

func (p *Pool) fail(ctx context.Context, what string, err error) {
	if p.failed != nil && ctx.Err() == nil {
		p.failed(fmt.Errorf("%s: %w", what, err))
	}
}

// Counts returns what the pool has done.
func (p *Pool) Counts() PoolCounts {
	if p == nil {
		return PoolCounts{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &p.counts
	return PoolCounts{Hits: c.hits.Load(), Started: c.started.Load(), Ahead: c.ahead.Load(), Waiting: int64(len(p.ready)), Idle: int64(p.slots.Idle())}
}

// countStart counts a sandbox that is started for a call.
func (p *Pool) countStart() {
	if p != nil {
		p.counts.started.Add(1)
	}
}

// Run is the function Run, faster when a shell waits for c. The slices of c must
// not be changed afterwards.
func (p *Pool) Run(ctx context.Context, c Command) (Exit, error) {
	return p.Hold(c).Run(ctx, c)
}

// Prepare starts shells for commands like c, before there was any.
func (p *Pool) Prepare(c Command) {
	p.end(c)
}

// Flush ends every waiting shell. New ones are started.
func (p *Pool) Flush() {
	if p == nil {
		return
	}
	p.mu.Lock()
	old := p.ready
	p.ready = nil
	p.epoch++
	p.mu.Unlock()
	p.discard(old...)
	p.nudge()
}

// Close ends every waiting shell and waits until nothing of them is left. Run
// goes on working, without the pool.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.stop()
	p.mu.Lock()
	old := p.ready
	p.ready, p.closed = nil, true
	empty := p.idle(0)
	p.mu.Unlock()
	for _, s := range old {
		s.close()
	}
	p.dismiss(empty)
	p.work.Wait()
	p.slots.Close()
	p.reports.close()
}

// note remembers that a call began or ended.
func (p *Pool) note(c Command) {
	if p == nil {
		return
	}
	shape := c.shape()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shape, p.last = &shape, time.Now()
}

func (p *Pool) end(c Command) {
	if p == nil {
		return
	}
	p.note(c)
	p.nudge()
}

// nudge makes the keeper look.
func (p *Pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default: // it has not looked yet
	}
}

// take removes the oldest shell that fits c, if any.
func (p *Pool) take(c Command) *readyShell {
	if p == nil || len(c.Script) > room {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.ready, func(s *readyShell) bool { return s.fits(c) })
	if i < 0 {
		return nil
	}
	s := p.ready[i]
	p.ready = slices.Delete(p.ready, i, i+1)
	return s
}

// put adds a fresh shell, unless the pool was flushed or closed since its start
// began. Of another kind the oldest makes room.
func (p *Pool) put(s *readyShell, epoch int) {
	p.mu.Lock()
	drop := []*readyShell{s}
	if !p.closed && p.epoch == epoch {
		p.ready = append(p.ready, s)
		over := max(0, len(p.ready)-p.size)
		drop = slices.Clone(p.ready[:over])
		p.ready = slices.Delete(p.ready, 0, over)
	}
	p.mu.Unlock()
	p.discard(drop...)
}

// slotsOf is where commands find helpers of earlier ones; nil without a pool.
func (p *Pool) slotsOf() *sandbox.Slots {
	if p == nil {
		return nil
	}
	return &p.slots
}

// retirer lets helpers of ended calls go; nil without a pool.
func (p *Pool) retirer() func(*sandbox.Process) {
	if p == nil {
		return nil
	}
	return p.retire
}

// retire has a helper ended when calls rest: the end of its namespaces takes as long as a small
// command. Of more than the keeper starts at a time the oldest end at once.
func (p *Pool) retire(helper *sandbox.Process) {
	if helper.Again() {
		p.aside(func() { helper.End() })
		return
	}
	p.mu.Lock()
	p.empty = append(p.empty, helper)
	most := p.size
	if p.closed { // there is no keeper
		most = 0
	}
	over := p.idle(most)
	p.mu.Unlock()
	p.dismiss(over)
}

// idle takes the oldest of the empty helpers, but for so many. Called with mu held.
func (p *Pool) idle(keep int) []*sandbox.Process {
	n := max(0, len(p.empty)-keep)
	over := slices.Clone(p.empty[:n])
	p.empty = slices.Delete(p.empty, 0, n)
	return over
}

func (p *Pool) dismiss(helpers []*sandbox.Process) {
	for _, helper := range helpers {
		p.aside(func() { helper.End() })
	}
}

func (p *Pool) dismissAll() {
	p.mu.Lock()
	all := p.idle(0)
	p.mu.Unlock()
	p.dismiss(all)
}

// discard ends shells that were not used.
func (p *Pool) discard(shells ...*readyShell) {
	for _, s := range shells {
		p.aside(s.close)
	}
}

// aside does something for which no call waits, unless the pool is closed, or nil:
// then nobody would wait for it at all.
func (p *Pool) aside(do func()) {
	if p == nil {
		do()
		return
	}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		// Ends with the helper that it ends.
		p.work.Go(do)
	}
	p.mu.Unlock()
	if closed {
		do()
	}
}

// keep has provide start what is missing until ctx ends. After a failure it pauses, and longer
// after each further one.
func (p *Pool) keep(ctx context.Context, provide func(context.Context) error, first time.Duration) {
	renew := time.NewTicker(renewEvery)
	defer renew.Stop()
	var again <-chan time.Time // not nil: nothing is started until then
	pause := first
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-again:
			again = nil
		case now := <-renew.C:
			p.expire(now.Add(-renewEvery))
		}
		if again != nil {
			p.dismissAll()
			continue
		}
		if err := provide(ctx); err != nil {
			p.fail(ctx, "no further shell waits for calls until this is tried again", err)
			again, pause = time.After(pause), min(2*pause, tryAgainMost)
			p.dismissAll()
		} else {
			pause = first
		}
	}
}

// provide starts what is missing, once a shell has been able to wait.
func (p *Pool) provide(ctx context.Context) error {
	c, _ := p.wanted()
	if c != nil && !p.proven {
		if err := ProbePool(ctx, *c); err != nil {
			return err
		}
		p.proven = true
	}
	return p.refill(ctx)
}

// quiet waits until no call begins or ends for a moment, or ctx ends.
func (p *Pool) quiet(ctx context.Context) bool {
	t := time.NewTimer(quietFor)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
		p.mu.Lock()
		rest := quietFor - time.Since(p.last)
		p.mu.Unlock()
		if rest <= 0 {
			return true
		}
		t.Reset(rest)
	}
}

// expire ends the shells that are older.
func (p *Pool) expire(before time.Time) {
	p.mu.Lock()
	young := slices.IndexFunc(p.ready, func(s *readyShell) bool { return s.born.After(before) })
	if young < 0 {
		young = len(p.ready)
	}
	old := slices.Clone(p.ready[:young])
	p.ready = slices.Delete(p.ready, 0, young)
	p.mu.Unlock()
	p.discard(old...)
}

// refill starts shells until there are enough, or one fails.
func (p *Pool) refill(ctx context.Context) error {
	for p.quiet(ctx) {
		p.dismissAll()
		c, epoch := p.wanted()
		if c == nil {
			return nil
		}
		p.counts.ahead.Add(1)
		s, err := startReady(ctx, *c, p.slotsOf())
		if err != nil {
			return err
		}
		p.put(s, epoch)
	}
	return nil
}

// wanted is the kind of shell to start now, if any.
func (p *Pool) wanted() (c *Command, epoch int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.shape == nil {
		return nil, 0
	}
	alike := slices.ContainsFunc(p.ready, func(s *readyShell) bool { return s.fits(*p.shape) })
	if alike && len(p.ready) >= p.size {
		return nil, 0
	}
	return p.shape, p.epoch
}
