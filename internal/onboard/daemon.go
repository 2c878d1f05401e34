package onboard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/service"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/interop/connect"
)

// Stop ends the daemon of a state directory; ok is false if none ran.
func Stop(ctx context.Context, stateDir string) (d statedir.Daemon, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, downWithin)
	defer cancel()
	if d, ok, err = service.Stop(ctx, stateDir); err == nil {
		err = Keep(stateDir)
	}
	if err != nil {
		err = console.Exit(console.ExitFailed, err)
	}
	return d, ok, err
}

// lentFile exists while a daemon runs only for connected agents.
func lentFile(stateDir string) string { return filepath.Join(stateDir, "connect", "daemon") }

// lendDaemon marks a daemon that was started for agents.
func lendDaemon(stateDir string) error {
	file := lentFile(stateDir)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, nil, 0o600)
}

// Keep has the daemon go on when no agent is connected.
func Keep(stateDir string) error {
	if err := os.Remove(lentFile(stateDir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// releaseDaemon ends a daemon that was started for agents, when none is connected.
func (c *Agents) releaseDaemon(ctx context.Context) error {
	names, err := connect.Connected(c.Daemon.Config.StateDir)
	if err != nil || len(names) > 0 {
		return err
	}
	if _, err := os.Stat(lentFile(c.Daemon.Config.StateDir)); err == nil {
		_, _, err := Stop(ctx, c.Daemon.Config.StateDir)
		return err
	}
	if _, err := c.Daemon.Endpoint(); err == nil && len(c.results) > 0 && !c.JSON {
		fmt.Fprintln(c.Err, "the daemon, which ran before, still runs; end it with `toold down`")
	}
	return nil
}

const downWithin = 2 * time.Minute
