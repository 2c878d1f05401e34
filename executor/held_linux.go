package executor

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/toold/toold/sandbox"
)

// Held is a command for which everything is ready, or being made ready, and of
// which nothing runs. Run or Drop must be called, from one goroutine.
type Held struct {
	pool    *Pool
	command Command
	streams *streams
	process *sandbox.Process // nil when err is not, and after Run and Drop
	waited  bool             // it is a shell of the pool
	fresh   bool             // it gets a helper that has held no other command
	err     error            // why it cannot run
}

// Hold makes ready what c needs, so that Run has less to do: it brings the script to
// a waiting shell, or else begins to make a sandbox. The writers, functions and times
// of c matter to Run only. It does not wait; what fails, Run tells.
func (p *Pool) Hold(c Command) *Held {
	p.note(c)
	h := &Held{pool: p, command: c}
	if h.err = c.check(); h.err != nil {
		return h
	}
	s := p.take(c)
	if s == nil {
		h.begin(c)
	} else if h.err = h.give(s); h.err == nil {
		h.waited = true
		p.counts.hits.Add(1)
	}
	return h
}

// give brings the script to a waiting shell, or ends it.
func (h *Held) give(s *readyShell) error {
	if err := s.process.Give(h.command.Script); err != nil {
		h.pool.discard(s)
		return err
	}
	h.streams, h.process = s.streams, s.process
	return nil
}

// begin starts a helper that holds the command.
func (h *Held) begin(c Command) {
	h.pool.countStart()
	slots := h.pool.slotsOf()
	if h.fresh {
		slots = nil
	}
	s, err := openStreams(c)
	if err == nil {
		if h.process, err = hold(c, s, slots); err != nil {
			s.close()
		}
		s.closeChild()
	}
	h.streams, h.waited, h.err = s, false, err
}

// hold hands the command to the sandbox, which keeps it.
func hold(c Command, s *streams, slots *sandbox.Slots) (*sandbox.Process, error) {
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
	start.Extra, start.Hold, start.Slots = file, true, slots
	return sandbox.Start(context.Background(), start)
}

// Run is the function Run for the command of Hold, with the writers, functions and
// times of c. It may be called once.
func (h *Held) Run(ctx context.Context, c Command) (Exit, error) {
	defer h.Drop()
	defer h.pool.end(c)
	if h.err == nil && !h.holds(c) {
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

// release lets the command run, once its writes will be reported. Where a shell or a sandbox that
// waited is not to be used, since something has changed, or is gone, another one runs the script.
func (h *Held) release(ctx context.Context, c Command) error {
	h.streams.reader.watch(h.pool)
	h.process.Borrow(c.Loopback)
	if err := c.starting(h.process.Identity()); err != nil {
		return err
	}
	err := h.process.Release(ctx)
	switch {
	case errors.Is(err, sandbox.ErrGone):
		h.pool.fail(ctx, "a sandbox that waited is not used", err)
		h.fresh = true // so that a command that cannot start costs one helper
	case !errors.Is(err, sandbox.ErrChanged):
		return err
	}
	h.Drop()
	if h.begin(c); h.err != nil {
		return h.err
	}
	return h.release(ctx, c)
}

// holds reports whether c is the command that was made ready.
func (h *Held) holds(c Command) bool {
	return h.process != nil && c.Script == h.command.Script && reflect.DeepEqual(c.shape(), h.command.shape())
}

// wait sees the released command through.
func (h *Held) wait(ctx context.Context, c Command) Exit {
	h.streams.attach(c)
	r := &running{Command: c, streams: h.streams, process: h.process, begun: time.Now(), retire: h.pool.retirer()}
	h.process = nil // it ends with the command
	defer h.streams.close()
	return r.wait(ctx)
}

// Drop ends what will not run. After Run it does nothing.
func (h *Held) Drop() {
	if h.process == nil {
		return
	}
	s := &readyShell{streams: h.streams, process: h.process}
	h.process = nil
	h.pool.discard(s)
}

// command is what the sandbox starts on these streams.
func (s *streams) command(c Command, argv []string) sandbox.Command {
	return sandbox.Command{
		Argv: argv, Env: c.Env, Dir: c.Dir, DirIs: c.DirIs,
		Stdin: s.child[0], Stdout: s.child[1], Stderr: s.child[2],
		Terminal: c.Terminal != Off, Profile: c.Sandbox,
	}
}
