package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/service"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/interop/connect"
)

const (
	upWithin   = 2 * time.Minute
	downWithin = 2 * time.Minute
)

func upCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "Have the daemon run in the background", Args: cobra.NoArgs,
		Long: "Starts the daemon in the background, unless one runs, and registers the workspace. Where\n" +
			"systemd manages your services it is a unit of yours, which starts whenever you log in,\n" +
			"elsewhere a process until the machine stops. `toold down` ends it, and removes the\n" +
			"unit; running calls are answered first.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.load()
			if err != nil {
				return err
			}
			if err := g.up(cmd.Context(), cfg); err != nil {
				return err
			}
			return keepDaemon(cfg.StateDir)
		},
	}
}

func downCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "End the daemon; running calls are answered first", Args: cobra.NoArgs,
		RunE: g.remotely(g.down),
	}
}

func (g *global) up(ctx context.Context, cfg config.Config) error {
	d, err := g.ensureDaemon(ctx, cfg)
	if err != nil {
		return err
	}
	is := "a daemon runs already"
	switch {
	case d.Unit != "":
		is = fmt.Sprintf("the daemon runs as the unit %s of systemd (systemctl --user status %s)", d.Unit, d.Unit)
	case d.Started:
		is = fmt.Sprintf("the daemon runs in the background, as process %d", d.PID)
	}
	text := fmt.Sprintf("%s\n  agents     %s\n  workspace  %s\n", is, d.URL, cfg.Workspace)
	if d.Started {
		text += fmt.Sprintf("  log        %s\n", d.Log)
	}
	if d.Unit != "" {
		text += "  starts     when you log in; to have it run without a login: loginctl enable-linger\n"
	}
	text += "See what agents do with `toold watch`; end the daemon with `toold down`.\n"
	v := map[string]any{"started": d.Started, "pid": d.PID, "url": d.URL, "workspace": cfg.Workspace, "unit": d.Unit, "log": d.Log}
	if g.JSON {
		return g.Emit(v)
	}
	fmt.Fprint(g.Err, text)
	return nil
}

func (g *global) ensureDaemon(ctx context.Context, cfg config.Config) (d service.Daemon, err error) {
	if err := daemon.MakeStateDir(cfg); err != nil {
		return d, err
	}
	if err := g.register(ctx, cfg); err != nil {
		return d, err
	}
	command, err := g.daemonCommand(cfg)
	if err != nil {
		return d, console.Exit(console.ExitFailed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	if d, err = service.Start(ctx, service.Options{StateDir: cfg.StateDir, Dir: cfg.Workspace, Command: command, Env: unitEnv(cfg)}); err != nil {
		return d, console.Exit(console.ExitFailed, fmt.Errorf("%w\n`toold serve` starts it in this terminal; `toold doctor` looks for what is wrong", err))
	}
	p, err := g.reach(ctx, cfg, client.Options{Silent: true})
	if err != nil {
		return d, console.Exit(console.ExitUnreachable, err)
	}
	p.close()
	return d, nil
}

// unitEnv is the environment of a unit, without secrets.
func unitEnv(cfg config.Config) (env []string) {
	own := append(slices.Collect(maps.Keys(config.Homes())), "TOOLD_*", "XDG_STATE_HOME", "TMPDIR")
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); executor.Passes(name, append(own, cfg.Env.Pass...)) {
			env = append(env, entry)
		}
	}
	return env
}

// daemonCommand starts the daemon with the flags of this command.
func (g *global) daemonCommand(cfg config.Config) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	command := []string{program, "serve", "--workspace", cfg.Workspace, "--state-dir", cfg.StateDir}
	for _, flag := range []struct{ name, file string }{{"--config", g.options.Path}, {"--policy", g.options.Policy}} {
		if flag.file == "" {
			continue
		}
		path, err := filepath.Abs(flag.file)
		if err != nil {
			return nil, err
		}
		command = append(command, flag.name, path)
	}
	for _, flag := range [][2]string{{"--listen", g.options.Listen}, {"--log-level", g.options.LogLevel}} {
		if flag[1] != "" {
			command = append(command, flag[0], flag[1])
		}
	}
	return command, nil
}

func (g *global) down(ctx context.Context, cfg config.Config, _ []string) error {
	d, ok, err := stopDaemon(ctx, cfg.StateDir)
	switch {
	case err != nil:
		return err
	case !ok:
		return g.Done(map[string]any{"stopped": false}, "no daemon runs")
	}
	return g.Done(map[string]any{"stopped": true, "pid": d.PID}, "the daemon has ended")
}

func stopDaemon(ctx context.Context, stateDir string) (d statedir.Daemon, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, downWithin)
	defer cancel()
	if d, ok, err = service.Stop(ctx, stateDir); err == nil {
		err = keepDaemon(stateDir)
	}
	if err != nil {
		err = console.Exit(console.ExitFailed, err)
	}
	return d, ok, err
}

// lentFile exists while a daemon runs only for connected agents.
func lentFile(stateDir string) string { return filepath.Join(stateDir, "connect", "daemon") }

func lendDaemon(stateDir string) error {
	file := lentFile(stateDir)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, nil, 0o600)
}

func keepDaemon(stateDir string) error {
	if err := os.Remove(lentFile(stateDir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// releaseDaemon ends a daemon that was started for agents, when none is connected.
func (c *connecting) releaseDaemon(ctx context.Context) error {
	names, err := connect.Connected(c.cfg.StateDir)
	if err != nil || len(names) > 0 {
		return err
	}
	if _, err := os.Stat(lentFile(c.cfg.StateDir)); err == nil {
		_, _, err := stopDaemon(ctx, c.cfg.StateDir)
		return err
	}
	if _, err := c.daemon(c.cfg).Endpoint(); err == nil && len(c.results) > 0 && !c.JSON {
		fmt.Fprintln(c.Err, "the daemon, which ran before, still runs; end it with `toold down`")
	}
	return nil
}
