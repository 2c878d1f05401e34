package executor

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/toold/toold/sandbox"
)

// Reservation is a command whose sandbox is ready or being made. The caller must call Run or
// Drop, from one goroutine.
type Reservation struct {
	pool    *Pool
	command Command
	streams *streams
	process *sandbox.Process // nil if err is set, and after Run and Drop
	waited  bool             // it is a warm shell
	fresh   bool             // it needs a helper that has run no other command
	err     error            // why it cannot run
}

// Reserve sets the script of a warm shell, or starts to make a sandbox. Only Run uses the
// writers, functions and times of c. Reserve does not block; Run returns its errors.
func (p *Pool) Reserve(c Command) *Reservation {
	p.note(c)
	h := &Reservation{pool: p, command: c}
	if h.err = c.check(); h.err != nil {
		return h
	}
	s := p.take(c)
	if s == nil {
		h.begin(c)
	} else if h.err = h.setScript(s); h.err == nil {
		h.waited = true
		p.counts.hits.Add(1)
	}
	return h
}

// setScript sets the script of a warm shell, or discards the shell.
func (h *Reservation) setScript(s *warmShell) error {
	if err := s.process.SetScript(h.command.Script); err != nil {
		h.pool.discard(s)
		return err
	}
	h.streams, h.process = s.streams, s.process
	return nil
}

// begin starts a helper, which makes a sandbox and waits.
func (h *Reservation) begin(c Command) {
	h.pool.countStart()
	slots := h.pool.slotsOf()
	if h.fresh {
		slots = nil
	}
	s, err := openStreams(c)
	if err == nil {
		if h.process, err = startReserved(c, s, slots); err != nil {
			s.close()
		}
		s.closeChild()
	}
	h.streams, h.waited, h.err = s, false, err
}

func startReserved(c Command, s *streams, slots *sandbox.Slots) (*sandbox.Process, error) {
	shell, err := findShell()
	if err != nil {
		return nil, err
	}
	argv, file, err := arguments(c.Script)
	if err != nil {
		return nil, err
	}
	if file != nil {
		defer file.Close()
	}
	start := s.command(c, append([]string{shell}, argv...))
	start.Extra, start.Reserve, start.Slots = file, true, slots
	return sandbox.Start(context.Background(), start)
}

// Run is the function Run for the reserved command, with the writers, functions and times of c.
// It may be called once.
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
	err := h.release(ctx, c)
	if err != nil && ctx.Err() != nil {
		return c.neverRan(), nil
	}
	if err != nil {
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

// release lets the command run once its writes are reported. If a pool's sandbox is gone or
// outdated, a new one runs the script.
func (h *Reservation) release(ctx context.Context, c Command) error {
	h.streams.reader.watch(h.pool)
	h.process.Borrow(c.Loopback)
	if err := c.starting(h.process.Identity()); err != nil {
		return err
	}
	err := h.process.Release(ctx)
	gone := errors.Is(err, sandbox.ErrGone)
	if h.pool == nil || !gone && !errors.Is(err, sandbox.ErrChanged) {
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
	return h.process != nil && c.Script == h.command.Script && reflect.DeepEqual(c.shape(), h.command.shape())
}

func (h *Reservation) wait(ctx context.Context, c Command) Exit {
	h.streams.attach(c)
	r := &running{Command: c, streams: h.streams, process: h.process, begun: time.Now(), retire: h.pool.retirer()}
	h.process = nil
	defer h.streams.close()
	return r.wait(ctx)
}

// Drop discards a command that will not run. After Run it does nothing.
func (h *Reservation) Drop() {
	if h.process == nil {
		return
	}
	s := &warmShell{streams: h.streams, process: h.process}
	h.process = nil
	h.pool.discard(s)
}

func (s *streams) command(c Command, argv []string) sandbox.Command {
	return sandbox.Command{
		Argv: argv, Env: c.Env, Dir: c.Dir, DirIs: c.DirIs,
		Stdin: s.child[0], Stdout: s.child[1], Stderr: s.child[2],
		Terminal: c.Terminal != Off, Profile: c.Sandbox,
	}
}
