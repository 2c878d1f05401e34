package executor

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/toold/toold/sandbox"
)

// room is the longest script for a waiting shell, in bytes.
const room = 16 << 10

type readyShell struct {
	shape   Command
	streams *streams
	process *sandbox.Process
	born    time.Time
}

// shape is what a command needs before its script is known.
func (c Command) shape() Command {
	return Command{
		Dir: c.Dir, DirIs: c.DirIs, Env: c.Env, Terminal: c.Terminal, Rows: c.Rows, Cols: c.Cols, Stdin: c.Stdin, Sandbox: c.Sandbox,
	}
}

// fits reports whether the shell is of the kind that c needs.
func (s *readyShell) fits(c Command) bool { return reflect.DeepEqual(s.shape, c.shape()) }

// startReady starts a shell for commands of the shape c.
func startReady(ctx context.Context, c Command, slots *sandbox.Slots) (*readyShell, error) {
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
	return &readyShell{shape: c, streams: streams, process: process, born: time.Now()}, nil
}

// close ends a shell that was not used.
func (s *readyShell) close() {
	s.process.End()
	s.streams.close()
}

// run gives the shell its script and waits for it. On an error it did not run.
func (s *readyShell) run(ctx context.Context, c Command) (Exit, error) {
	h := &Held{command: c}
	if err := h.give(s); err != nil {
		return Exit{}, err
	}
	return h.Run(ctx, c)
}

// probeScript shows what a waiting shell could have wrong, and breaks off with an
// error of the parser.
const probeScript = `echo "$0|$_|$-|$#|$?|$LINENO|$SECONDS|$BASH_SUBSHELL|${BASH_ENV-}|$BASH_EXECUTION_STRING"
for fd in /dev/fd/*; do echo "$fd"; done
shopt; trap -p; alias; declare -F; umask; ulimit -a; env -u TOOLD_CALL
echo "é'\"\$" ; (exit 3`

// ProbePool tries whether a Pool works for commands like c: whether a shell that
// waited runs a script exactly as a fresh one does. The error tells why not.
func ProbePool(ctx context.Context, c Command) error {
	c = c.shape()
	p := NewPool(0, nil) // so that one helper holds both
	defer p.Close()
	var fresh, late shown
	want, err := p.Run(ctx, fresh.of(c))
	if err != nil {
		return err
	}
	p.work.Wait() // until the helper waits
	s, err := startReady(ctx, c, p.slotsOf())
	if err != nil {
		return err
	}
	got, err := s.run(ctx, late.of(c))
	if err != nil {
		return err
	}
	if got.Code != want.Code || late.String() != fresh.String() {
		return errors.New("this bash does not run a script that comes late as it runs one that was there from the start")
	}
	return nil
}

type shown struct{ out, errs bytes.Buffer }

func (s *shown) of(c Command) Command {
	c.Script, c.Timeout, c.Stdout, c.Stderr = probeScript, time.Minute, &s.out, &s.errs
	return c
}

func (s *shown) String() string { return s.out.String() + "\x00" + s.errs.String() }
