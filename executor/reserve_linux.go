package executor

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/toold/toold/sandbox/launch"
)

// Reservation is a command whose sandbox is ready or in preparation. The caller must call Run or Drop. It is not safe
// for concurrent use.
type Reservation struct {
	pool    *Pool
	own     bool // the pool serves only this command, and has no other shell for it
	command Command
	*shell       // nil if err is set, and after Run and Drop
	waited  bool // it is a warm shell
	fresh   bool // it needs a helper that has run no other command
	err     error
}

// Reserve sets the script of a warm shell, or begins to prepare a sandbox. Only Run uses the writers, functions and
// times of c. Reserve does not block; Run returns its errors.
func (p *Pool) Reserve(c Command) *Reservation {
	h := &Reservation{pool: p, command: c}
	if p == nil {
		h.pool, h.own, h.fresh = NewPool(0, nil), true, true
		h.pool.reports.filled = true // it lends one instance and need not open more
	}
	h.pool.note(c)
	if h.err = c.check(); h.err != nil {
		return h
	}
	if s := h.pool.take(c); s != nil {
		h.waited = true
		h.use(s)
	} else {
		h.begin(c)
	}
	return h
}

func (h *Reservation) use(s *shell) {
	if h.err = s.process.SetScript(h.command.Script); h.err != nil {
		h.pool.discard(s)
		return
	}
	h.shell = s
	h.pool.count(&h.pool.counts.Hits)
}

func (h *Reservation) begin(c Command) {
	slots := h.pool.slots
	if h.fresh {
		slots = nil
	}
	h.waited = false
	h.pool.count(&h.pool.counts.Started)
	h.shell, h.err = startShell(context.Background(), c, false, slots)
}

// Run is the function Run for the reserved command, with the writers, functions and times of c. It may be called
// once.
func (h *Reservation) Run(ctx context.Context, c Command) (Exit, error) {
	defer h.Drop()
	defer h.pool.end(c)
	if h.err == nil && !h.matches(c) {
		h.err = errors.New("cannot run the command: it is not the one that was prepared")
	}
	if h.err != nil {
		return Exit{}, h.err
	}
	if ctx.Err() != nil {
		return c.neverRan(), nil
	}
	if err := h.release(ctx, c); err != nil {
		if ctx.Err() != nil {
			return c.neverRan(), nil
		}
		return Exit{}, err
	}
	if c.Lends != "" {
		h.process.Lend(c.Loopback, c.Lends)
	}
	borrowed := h.process.Borrowed()
	exit := h.wait(ctx, c)
	exit.Borrowed = borrowed
	return exit, nil
}

// release lets the command run once its writes are reported. If a sandbox from the pool has ended or is outdated, it
// runs the script in a new one.
func (h *Reservation) release(ctx context.Context, c Command) error {
	h.streams.reader.watch(&h.pool.reports)
	h.process.Borrow(c.Loopback)
	if err := c.starting(h.process.Identity()); err != nil {
		return err
	}
	err := h.process.Release(ctx)
	gone := errors.Is(err, launch.ErrGone)
	if h.own || !gone && !errors.Is(err, launch.ErrChanged) {
		return err
	}
	if gone {
		h.pool.fail(ctx, "a sandbox that waited is not used", err)
		h.fresh = true // a command that cannot start costs one helper
	}
	h.Drop()
	if h.begin(c); h.err != nil {
		return h.err
	}
	return h.release(ctx, c)
}

func (h *Reservation) matches(c Command) bool {
	return h.shell != nil && c.Script == h.command.Script && reflect.DeepEqual(c.shape(), h.command.shape())
}

func (h *Reservation) wait(ctx context.Context, c Command) Exit {
	s := h.shell
	h.shell = nil
	s.streams.attach(c)
	defer s.streams.close()
	r := &running{Command: c, streams: s.streams, process: s.process, begun: time.Now(), retire: h.pool.retire}
	return r.wait(ctx)
}

// Drop discards a command that will not run. After Run it has no effect.
func (h *Reservation) Drop() {
	if h.shell != nil {
		h.pool.discard(h.shell)
		h.shell = nil
	}
	if h.own {
		h.pool.Close()
	}
}
