// Package service starts a daemon that outlives the command which starts it, and ends
// one.
//
// Where systemd manages the user's services the daemon is a transient unit, elsewhere a
// process in a session of its own. Its output is appended to a file of the state directory
// in both cases. Whether a daemon runs is known from the state directory alone.
package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toold/toold/internal/statedir"
)

// Options say how a daemon is started. All are needed.
type Options struct {
	StateDir string   // exists
	Dir      string   // the working directory
	Command  []string // the program, by its absolute path, and its arguments
}

// Daemon is a running daemon.
type Daemon struct {
	statedir.Daemon
	Started bool   // by this Start; else it ran before
	Unit    string // of systemd; "" when Started is false, or there is none
	Log     string // the file that has its output; "" unless Started
}

// every is how often the state directory is looked at.
const every = 20 * time.Millisecond

// Start returns the daemon of the state directory, and starts it if none runs. It returns
// when the daemon can be reached. The error contains what the daemon printed.
func Start(ctx context.Context, o Options) (d Daemon, err error) {
	err = statedir.Alone(ctx, o.StateDir, "service start", func() error {
		running, ok, err := statedir.Running(o.StateDir)
		if ok || err != nil {
			d = Daemon{Daemon: running}
			return err
		}
		d, err = o.start(ctx)
		return err
	})
	return d, err
}

// process is a daemon that is being started.
type process struct {
	unit  string
	ended func() (why string, over bool) // never blocks
}

func (o Options) start(ctx context.Context) (Daemon, error) {
	d := Daemon{Started: true, Log: filepath.Join(o.StateDir, "daemon.log")}
	if err := os.Rename(d.Log, d.Log+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, fmt.Errorf("cannot put the daemon's former log aside: %w", err)
	}
	begin := o.detach
	if managed(ctx) {
		begin = o.unit
	}
	p, err := begin(ctx, d.Log)
	if err != nil {
		return d, err
	}
	d.Unit = p.unit
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var ok bool
		if d.Daemon, ok, err = statedir.Running(o.StateDir); ok || err != nil {
			return d, err
		}
		if why, over := p.ended(); over {
			return d, fmt.Errorf("the daemon ended at once (%s):\n%s", why, tail(d.Log))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return d, fmt.Errorf("the daemon cannot be reached yet: %w; what it printed is in %s", context.Cause(ctx), d.Log)
		}
	}
}

// tail is the end of a log.
func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	lines := strings.TrimSpace(string(text))
	if len(lines) > most {
		lines = "…" + lines[len(lines)-most:]
	}
	return "  " + strings.ReplaceAll(lines, "\n", "\n  ")
}

// Stop ends the daemon of a state directory, however it was started, and returns when it
// has ended. ok is false when none runs.
func Stop(ctx context.Context, stateDir string) (d statedir.Daemon, ok bool, err error) {
	d, ok, err = statedir.Running(stateDir)
	if !ok || err != nil {
		return d, false, err
	}
	if !serves(d.PID, stateDir) {
		return d, true, fmt.Errorf("cannot end the daemon: process %d is not it, perhaps since it runs in another container; end it there", d.PID)
	}
	p, err := os.FindProcess(d.PID)
	if err == nil {
		err = p.Signal(syscall.SIGTERM)
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return d, true, fmt.Errorf("cannot end the daemon (process %d): %w", d.PID, err)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if still, err := statedir.Served(stateDir); err != nil || !still {
			return d, true, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return d, true, fmt.Errorf("the daemon (process %d) has not ended yet: %w", d.PID, context.Cause(ctx))
		}
	}
}
