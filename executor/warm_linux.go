package executor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"time"

	"github.com/toold/toold/sandbox/launch"
)

// room is the longest script for a warm shell, in bytes.
const room = 16 << 10

// shell is a shell in its own sandbox that has not started its script.
type shell struct {
	shape   Command
	streams *streams
	process *launch.Process
	born    time.Time
}

// shape returns the part of a command on which a shell depends before it has a script.
func (c Command) shape() Command {
	return Command{
		Dir: c.Dir, DirIs: c.DirIs, Env: c.Env, Terminal: c.Terminal, Rows: c.Rows, Cols: c.Cols, Stdin: c.Stdin, Sandbox: c.Sandbox,
	}
}

func (s *shell) fits(c Command) bool { return reflect.DeepEqual(s.shape, c.shape()) }

// startShell starts a shell for c or, if warm, for a script that follows later.
func startShell(ctx context.Context, c Command, warm bool, slots *launch.Slots) (*shell, error) {
	bash, err := findShell()
	if err != nil {
		return nil, err
	}
	argv, long := bashArguments, (*os.File)(nil)
	if !warm {
		if argv, long, err = arguments(c.Script); err != nil {
			return nil, err
		}
	}
	defer long.Close() // nil is allowed
	streams, err := openStreams(c)
	if err != nil {
		return nil, err
	}
	start := launch.Command{
		Argv: append([]string{bash}, argv...), Env: c.Env, Dir: c.Dir, DirIs: c.DirIs,
		Stdin: streams.child[0], Stdout: streams.child[1], Stderr: streams.child[2], Extra: long,
		Terminal: c.Terminal != Off, Profile: c.Sandbox, Slots: slots, Reserve: !warm,
	}
	if warm {
		start.Room = room
	}
	process, err := launch.Start(ctx, start)
	streams.closeChild()
	if err != nil {
		streams.close()
		return nil, err
	}
	return &shell{c.shape(), streams, process, time.Now()}, nil
}

func (s *shell) close() {
	s.process.End()
	s.streams.close()
}

// run sets the script and waits for its end. After an error, it did not run.
func (s *shell) run(ctx context.Context, c Command) (Exit, error) {
	h := &Reservation{pool: NewPool(0, nil), own: true, command: c}
	h.pool.reports.filled = true // it lends one
	h.use(s)
	return h.Run(ctx, c)
}

// probeScript prints what could differ in a warm shell, and ends with a syntax error.
const probeScript = `echo "$0|$_|$-|$#|$?|$LINENO|$SECONDS|$BASH_SUBSHELL|${BASH_ENV-}|$BASH_EXECUTION_STRING"
for fd in /dev/fd/*; do echo "$fd"; done
shopt; trap -p; alias; declare -F; umask; ulimit -a; env -u TOOLD_CALL
echo "é'\"\$" ; (exit 3`

// ProbePool checks that a warm shell runs a script exactly like a new one, and returns whether one helper can run
// several commands.
func ProbePool(ctx context.Context, c Command) (reuses bool, err error) {
	slots := &launch.Slots{}
	defer slots.Close()
	return probe(ctx, c, slots)
}

// probe is ProbePool. It leaves its helper in slots.
func probe(ctx context.Context, c Command, slots *launch.Slots) (reuses bool, err error) {
	c = c.shape()
	p := NewPool(0, nil)
	p.slots = slots // one helper runs both
	defer p.settle()
	var fresh, late shown
	want, err := p.Run(ctx, fresh.of(c))
	if err != nil {
		return reuses, err
	}
	p.work.Wait() // until the helper is idle
	reuses = slots.Idle() > 0
	s, err := startShell(ctx, c, true, slots)
	if err != nil {
		return reuses, err
	}
	got, err := s.run(ctx, late.of(c))
	if err != nil {
		return reuses, err
	}
	if got.Code != want.Code || late.String() != fresh.String() {
		return reuses, errors.New("this bash does not run a script that comes late as it runs one that was there from the start")
	}
	return reuses, nil
}

type shown struct{ out, errs bytes.Buffer }

func (s *shown) of(c Command) Command {
	c.Script, c.Timeout, c.Stdout, c.Stderr = probeScript, time.Minute, &s.out, &s.errs
	return c
}

func (s *shown) String() string { return s.out.String() + "\x00" + s.errs.String() }
