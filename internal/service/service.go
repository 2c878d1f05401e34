// Package service starts a daemon in the background and ends one. The daemon is a unit of the user's systemd or,
// without systemd, a process in a session of its own. Its output goes to a file in the state directory.
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

// Options configure Start. All are required.
type Options struct {
	StateDir string   // must exist
	Dir      string   // working directory
	Command  []string // absolute program and arguments
	Env      []string // of a unit; a process inherits everything
}

// Background is the variable that tells a daemon that Start started it.
const Background = "TOOLD_BACKGROUND"

// Daemon is a running daemon.
type Daemon struct {
	statedir.Daemon
	Started bool   // by this Start; otherwise it ran before
	Unit    string // of systemd; "" if Started is false or there is no unit
	Log     string // file with its output; "" unless Started
}

// every is the interval of checks of the state directory.
const every = 20 * time.Millisecond

// longestEnd is more than a daemon takes to end: limits.grace, at most a minute, and another minute.
const longestEnd = 3 * time.Minute

// Start returns the daemon of the state directory as soon as it can be reached. It starts the daemon if none runs.
// The error contains what the daemon printed.
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
		begin = o.enable
	}
	p, err := begin(ctx, d.Log)
	if err != nil {
		return d, err
	}
	d.Unit = p.unit
	if d.Daemon, err = o.await(ctx, p, d.Log); err != nil {
		err = errors.Join(err, Disable(context.WithoutCancel(ctx), o.StateDir))
	}
	return d, err
}

func (o Options) await(ctx context.Context, p process, log string) (statedir.Daemon, error) {
	tick := time.Tick(every)
	for {
		if d, ok, err := statedir.Running(o.StateDir); ok || err != nil {
			return d, err
		}
		if why, over := p.ended(); over {
			return statedir.Daemon{}, fmt.Errorf("the daemon ended at once (%s):\n%s", why, tail(log))
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return statedir.Daemon{}, fmt.Errorf("the daemon cannot be reached yet: %w; what it printed is in %s", context.Cause(ctx), log)
		}
	}
}

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

// Stop ends the daemon of a state directory, however it was started, removes its unit and waits for its end. ok is
// false if there was none.
func Stop(ctx context.Context, stateDir string) (d statedir.Daemon, ok bool, err error) {
	if d, ok, err = statedir.Running(stateDir); err != nil {
		return d, false, err
	}
	unit := Disable(ctx, stateDir)
	if served, err := statedir.Served(stateDir); err != nil || !served || !ok {
		return d, ok, errors.Join(err, unit)
	}
	return d, ok, errors.Join(end(ctx, stateDir, d), unit)
}

// end ends a process if that serves the state directory.
func end(ctx context.Context, stateDir string, d statedir.Daemon) error {
	if !serves(d.PID, stateDir) {
		return fmt.Errorf("cannot end the daemon: process %d is not it, perhaps since it runs in another container; end it there", d.PID)
	}
	p, err := os.FindProcess(d.PID)
	if err == nil {
		err = p.Signal(syscall.SIGTERM)
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot end the daemon (process %d): %w", d.PID, err)
	}
	tick, late := time.Tick(every), time.After(longestEnd)
	for {
		if still, err := statedir.Served(stateDir); err != nil || !still {
			return err
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return fmt.Errorf("the daemon (process %d) has not ended yet: %w", d.PID, context.Cause(ctx))
		case <-late:
			return fmt.Errorf("the daemon (process %d) has not ended in %s, so it hangs or is stopped; this ends it with its calls, which it then cannot answer: kill -KILL %[1]d", d.PID, longestEnd)
		}
	}
}
