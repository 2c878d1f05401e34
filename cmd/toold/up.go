package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/service"
)

// How long a daemon may take to answer, and to end.
const (
	upWithin   = 2 * time.Minute
	downWithin = 2 * time.Minute
)

func upCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "Have the daemon run in the background", Args: cobra.NoArgs,
		Long: "Starts the daemon in the background, unless one runs, and registers the workspace. Where\n" +
			"systemd manages your services it is a unit of yours until it is stopped or you log out,\n" +
			"elsewhere a process. `toold down` ends it; running calls are answered first.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.load()
			if err != nil {
				return err
			}
			return g.up(cmd.Context(), cfg)
		},
	}
}

func downCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "End the daemon; running calls are answered first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.down(cmd.Context()) },
	}
}

// up starts or finds the daemon, and says where it is.
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
	text += "See what agents do with `toold watch`; end the daemon with `toold down`.\n"
	v := map[string]any{"started": d.Started, "pid": d.PID, "url": d.URL, "workspace": cfg.Workspace, "unit": d.Unit, "log": d.Log}
	if g.json {
		return g.emit(v)
	}
	fmt.Fprint(g.std.err, text)
	return nil
}

// ensureDaemon starts or finds the daemon, which serves the workspace and answers.
func (g *global) ensureDaemon(ctx context.Context, cfg config.Config) (d service.Daemon, err error) {
	if err := daemon.MakeStateDir(cfg); err != nil {
		return d, err
	}
	if err := g.register(ctx, cfg); err != nil {
		return d, err
	}
	command, err := g.daemonCommand(cfg)
	if err != nil {
		return d, &exitError{exitFailed, err}
	}
	ctx, cancel := context.WithTimeout(ctx, upWithin)
	defer cancel()
	if d, err = service.Start(ctx, service.Options{StateDir: cfg.StateDir, Dir: cfg.Workspace, Command: command}); err != nil {
		return d, &exitError{exitFailed, fmt.Errorf("%w\n`toold serve` starts it in this terminal; `toold doctor` looks for what is wrong", err)}
	}
	p, err := g.reach(ctx, cfg, client.Options{Silent: true})
	if err != nil {
		return d, &exitError{exitUnreachable, err}
	}
	p.close()
	return d, nil
}

// daemonCommand is how the daemon is started as this command was, in the workspace.
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

func (g *global) down(ctx context.Context) error {
	cfg, err := g.remote()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, downWithin)
	defer cancel()
	d, ok, err := service.Stop(ctx, cfg.StateDir)
	switch {
	case err != nil:
		return &exitError{exitFailed, err}
	case !ok:
		return g.done(map[string]any{"stopped": false}, "no daemon runs")
	}
	return g.done(map[string]any{"stopped": true, "pid": d.PID}, "the daemon has ended")
}
