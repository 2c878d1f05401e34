package executor

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/toold/toold/sandbox"
)

// room is the longest script for a warm shell, in bytes.
const room = 16 << 10

type warmShell struct {
	shape   Command
	streams *streams
	process *sandbox.Process
	born    time.Time
}

// shape returns the part of a command that a warm shell depends on.
func (c Command) shape() Command {
	return Command{
		Dir: c.Dir, DirIs: c.DirIs, Env: c.Env, Terminal: c.Terminal, Rows: c.Rows, Cols: c.Cols, Stdin: c.Stdin, Sandbox: c.Sandbox,
	}
}

func (s *warmShell) fits(c Command) bool { return reflect.DeepEqual(s.shape, c.shape()) }

func startWarm(ctx context.Context, c Command, slots *sandbox.Slots) (*warmShell, error) {
	shell, err := findShell()
	if err != nil {
		return nil, err
	}
	streams, err := openStreams(c)
	if err != nil {
		return nil, err
	}
	command := streams.command(c, []string{shell, "--noprofile", "--norc", "-c"})
	command.Room, command.Slots = room, slots
	process, err := sandbox.Start(ctx, command)
	streams.closeChild()
	if err != nil {
		streams.close()
		return nil, err
	}
	return &warmShell{shape: c, streams: streams, process: process, born: time.Now()}, nil
}

func (s *warmShell) close() {
	s.process.End()
	s.streams.close()
}

// run sets the script and runs it. On an error it did not run.
func (s *warmShell) run(ctx context.Context, c Command) (Exit, error) {
	h := &Reservation{command: c}
	if err := h.setScript(s); err != nil {
		return Exit{}, err
	}
	return h.Run(ctx, c)
}

// probeScript prints what could differ in a warm shell, and ends with a syntax error.
const probeScript = `echo "$0|$_|$-|$#|$?|$LINENO|$SECONDS|$BASH_SUBSHELL|${BASH_ENV-}|$BASH_EXECUTION_STRING"
for fd in /dev/fd/*; do echo "$fd"; done
shopt; trap -p; alias; declare -F; umask; ulimit -a; env -u TOOLD_CALL
echo "é'\"\$" ; (exit 3`

// ProbePool checks that a warm shell runs a script exactly as a fresh one does, and returns
// whether a sandbox can hold several commands in turn.
func ProbePool(ctx context.Context, c Command) (reuses bool, err error) {
	c = c.shape()
	p := NewPool(0, nil) // so that one helper runs both
	defer p.Close()
	var fresh, late shown
	want, err := p.Run(ctx, fresh.of(c))
	if err != nil {
		return reuses, err
	}
	p.work.Wait() // until the helper is idle
	reuses = p.Counts().Idle > 0
	s, err := startWarm(ctx, c, p.slotsOf())
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
