package executor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toold/toold/sandbox/launch"
)

const (
	// quietFor is how long no call must have begun or ended before a shell is started, so that the return is sent
	// first and short successive calls keep the processors.
	quietFor = 5 * time.Millisecond

	// renewEvery is the maximum age of a warm shell, within a factor of two.
	renewEvery = 5 * time.Minute

	// After a failure, the pool retries after tryAgain, which doubles up to tryAgainMost.
	tryAgain     = time.Minute
	tryAgainMost = time.Hour
)

// Pool runs commands like Run, but keeps warm shells, each in its own sandbox, that wait for the single script that
// they will run. A script cannot detect that its shell was warm.
//
// A warm shell fits commands that differ from the last one only in script, times and writers. Without one, Run starts
// the command at once. Shells are started between calls, renewed when they are old, used once, and never after a
// directory, mount or hidden file of their sandbox has changed.
//
// A nil Pool keeps no shells. A Pool is safe for concurrent use.
type Pool struct {
	size   int
	failed func(error)
	wake   chan struct{} // wakes the keeper
	stop   context.CancelFunc
	work   sync.WaitGroup // keeper, and helpers that are ending
	proven bool           // a warm shell has worked; used only by the keeper

	reports reportPool
	slots   *launch.Slots

	mu     sync.Mutex
	warm   []*shell          // oldest first
	empty  []*launch.Process // helpers of ended calls, oldest first
	shape  *Command          // of the last call
	last   time.Time         // when a call last began or ended
	epoch  int               // incremented by Flush
	counts PoolCounts        // except Waiting
	closed bool
}

// NewPool returns a pool of at most size warm shells; with 0 it only reuses helpers. The caller must call Close.
// failed, if not nil, receives why a shell could not wait, or could not be used although nothing had changed.
func NewPool(size int, failed func(error)) *Pool {
	ctx, stop := context.WithCancel(context.Background())
	p := &Pool{size: size, failed: failed, wake: make(chan struct{}, 1), stop: stop, slots: &launch.Slots{}}
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

// Run is the function Run, faster if a warm shell fits c. The caller must not change the slices of c afterwards.
func (p *Pool) Run(ctx context.Context, c Command) (Exit, error) {
	return p.Reserve(c).Run(ctx, c)
}

// Prepare starts shells for commands like c before the first such command.
func (p *Pool) Prepare(c Command) {
	if p != nil {
		p.end(c)
	}
}

// Counts returns what the pool has done.
func (p *Pool) Counts() PoolCounts {
	if p == nil {
		return PoolCounts{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	c.Waiting = int64(len(p.warm))
	return c
}

func (p *Pool) count(n *int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*n++
}

// Flush replaces every warm shell.
func (p *Pool) Flush() {
	if p == nil {
		return
	}
	p.mu.Lock()
	old := cut(&p.warm, 0)
	p.epoch++
	p.mu.Unlock()
	p.discard(old...)
	p.nudge()
}

// Close ends every warm shell and waits for that. Run continues to work.
func (p *Pool) Close() {
	if p != nil {
		p.settle()
		p.slots.Close()
	}
}

// settle is Close, but keeps idle helpers in the slots.
func (p *Pool) settle() {
	p.stop()
	p.mu.Lock()
	warm, empty := cut(&p.warm, 0), cut(&p.empty, 0)
	p.closed = true
	p.mu.Unlock()
	p.discard(warm...)
	p.dismiss(empty)
	p.work.Wait()
	p.reports.close()
}

func (p *Pool) note(c Command) {
	shape := c.shape()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shape, p.last = &shape, time.Now()
}

func (p *Pool) end(c Command) {
	p.note(c)
	p.nudge()
}

func (p *Pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// take removes and returns the oldest shell that fits c, or nil.
func (p *Pool) take(c Command) *shell {
	if len(c.Script) > room {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.warm, func(s *shell) bool { return s.fits(c) })
	if i < 0 {
		return nil
	}
	s := p.warm[i]
	p.warm = slices.Delete(p.warm, i, i+1)
	return s
}

// most returns how many shells, and how many ended helpers, the pool keeps. The caller holds mu.
func (p *Pool) most() int {
	if p.closed {
		return 0
	}
	return p.size
}

// cut removes the oldest elements of a list, except for the last keep, and returns them. The caller holds mu.
func cut[T any](list *[]T, keep int) []T {
	n := max(0, len(*list)-keep)
	old := slices.Clone((*list)[:n])
	*list = slices.Delete(*list, 0, n)
	return old
}

// put adds a shell unless the pool was flushed since its start began. A full pool drops the oldest.
func (p *Pool) put(s *shell, epoch int) {
	p.mu.Lock()
	drop := []*shell{s}
	if p.epoch == epoch {
		p.warm = append(p.warm, s)
		drop = cut(&p.warm, p.most())
	}
	p.mu.Unlock()
	p.discard(drop...)
}

// retire queues a helper to be ended between calls, since ending it takes as long as a small command. The oldest ones
// beyond the pool's size end at once.
func (p *Pool) retire(helper *launch.Process) {
	if helper.Again() {
		p.dismiss([]*launch.Process{helper})
		return
	}
	p.mu.Lock()
	p.empty = append(p.empty, helper)
	over := cut(&p.empty, p.most())
	p.mu.Unlock()
	p.dismiss(over)
}

func (p *Pool) dismiss(helpers []*launch.Process) {
	for _, helper := range helpers {
		p.aside(func() { helper.End() })
	}
}

func (p *Pool) dismissAll() {
	p.mu.Lock()
	all := cut(&p.empty, 0)
	p.mu.Unlock()
	p.dismiss(all)
}

func (p *Pool) discard(shells ...*shell) {
	for _, s := range shells {
		p.aside(s.close)
	}
}

// aside runs do in the background. It does nothing if the pool is closed, since nothing would wait for do.
func (p *Pool) aside(do func()) {
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

// keep calls provide until ctx ends. After a failure it waits, twice as long each time.
func (p *Pool) keep(ctx context.Context, provide func(context.Context) error, first time.Duration) {
	renew := time.Tick(renewEvery)
	var again <-chan time.Time // nil unless it waits after a failure
	pause := first
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-again:
			again = nil
		case now := <-renew:
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

// provide starts missing shells once a shell has worked.
func (p *Pool) provide(ctx context.Context) error {
	if c, _ := p.wanted(); c != nil && !p.proven {
		if _, err := probe(ctx, *c, p.slots); err != nil {
			return err
		}
		p.proven = true
	}
	return p.refill(ctx)
}

// quiet waits until no call begins or ends for quietFor. It returns false if ctx ends.
func (p *Pool) quiet(ctx context.Context) bool {
	for rest := quietFor; rest > 0; {
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return false
		}
		p.mu.Lock()
		rest = quietFor - time.Since(p.last)
		p.mu.Unlock()
	}
	return true
}

func (p *Pool) expire(before time.Time) {
	p.mu.Lock()
	young := slices.IndexFunc(p.warm, func(s *shell) bool { return s.born.After(before) })
	keep := 0
	if young >= 0 {
		keep = len(p.warm) - young
	}
	old := cut(&p.warm, keep)
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
		p.count(&p.counts.Ahead)
		s, err := startShell(ctx, *c, true, p.slots)
		if err != nil {
			return err
		}
		p.put(s, epoch)
	}
	return nil
}

// wanted returns the kind of shell to start now; nil = none.
func (p *Pool) wanted() (c *Command, epoch int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.shape == nil {
		return nil, 0
	}
	alike := slices.ContainsFunc(p.warm, func(s *shell) bool { return s.fits(*p.shape) })
	if alike && len(p.warm) >= p.size {
		return nil, 0
	}
	return p.shape, p.epoch
}
