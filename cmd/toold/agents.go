package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/onboard"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/internal/service"
)

func connectCommand(g *global) *cobra.Command {
	var yes, undo bool
	var server lettaServer
	cmd := &cobra.Command{
		Use: "connect [AGENT... | mcp CLIENT | letta --url URL]", Short: "Have the agents that are installed here run in toold",
		Long: "Finds installed agents, shows the exact change of their configuration, asks once, proves\n" +
			"each change with the agent's own program and a scripted model on this machine, and makes\n" +
			"it. The daemon is started in the background unless one runs. AGENT is one of:\n  " +
			strings.Join(onboard.Names(), ", ") + "\n\n" +
			"With `--json` and without `--yes` the changes are only listed. `--undo` puts the files back as they were; from a file that was changed since it takes\n" +
			"out what was written, and shows that.\n\n" +
			"`connect letta --url URL` gives conversations of a running server of Letta toold's tools and\n" +
			"decides about its own, until it is interrupted, as `toold letta` does.",
		Args: cobra.ArbitraryArgs, ValidArgs: append(onboard.Names(), "mcp"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch of := slices.Equal(args, []string{"letta"}); {
			case server.URL != "" && of && !undo:
				return server.serve(cmd.Context(), g)
			case server.URL != "":
				return console.Usage(errors.New("--url is of `toold connect letta` alone"))
			}
			return g.connectAgents(cmd.Context(), args, yes, undo)
		},
	}
	server.flags(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "make the changes without asking")
	cmd.Flags().BoolVar(&undo, "undo", false, "take the changes back")
	return cmd
}

func (g *global) connectAgents(ctx context.Context, args []string, yes, undo bool) error {
	agents, err := onboard.Chosen(args)
	if err != nil {
		return console.Usage(err)
	}
	read := g.load
	if undo {
		read = g.remote
	}
	cfg, err := read()
	if err != nil {
		return err
	}
	c := g.agents(cfg)
	c.Yes, c.Undo = yes, undo
	return c.Run(ctx, agents, len(args) > 0)
}

func (g *global) agents(cfg config.Config) *onboard.Agents {
	return &onboard.Agents{Console: g.Console, Daemon: g.daemon(cfg), Flags: onboard.Flags(cfg), Ensure: func(ctx context.Context) (service.Daemon, error) { return g.ensureDaemon(ctx, cfg) }}
}

func upCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "up", SuggestFor: []string{"start"}, Short: "Have the daemon run in the background", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.load()
			if err != nil {
				return err
			}
			if err := g.up(cmd.Context(), cfg); err != nil {
				return err
			}
			return onboard.Keep(cfg.StateDir)
		},
	}
}

func downCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "down", SuggestFor: []string{"stop"}, Short: "End the daemon; running calls are answered first", Args: cobra.NoArgs,
		RunE: g.remotely(g.down),
	}
}

func (g *global) up(ctx context.Context, cfg config.Config) error {
	if other := g.daemon(cfg).OtherVersion(); other != "" {
		fmt.Fprintln(g.Err, "toold:", other)
	}
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
	text += "See what agents do with `toold watch`; end the daemon with `toold down`."
	v := map[string]any{"started": d.Started, "pid": d.PID, "url": d.URL, "workspace": cfg.Workspace, "unit": d.Unit, "log": d.Log}
	return g.Done(v, text)
}

func (g *global) ensureDaemon(ctx context.Context, cfg config.Config) (d service.Daemon, err error) {
	if err := daemon.MakeStateDir(cfg); err != nil {
		return d, err
	}
	if _, err := g.daemon(cfg).ForCalls(); err != nil && !errors.Is(err, reach.ErrNotRunning) {
		return d, err
	}
	if err := g.register(ctx, cfg); err != nil {
		return d, err
	}
	command, err := onboard.Command(g.options, cfg)
	if err != nil {
		return d, console.Exit(console.ExitFailed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if d, err = service.Start(ctx, service.Options{StateDir: cfg.StateDir, Dir: cfg.Workspace, Command: command, Env: onboard.UnitEnv(cfg)}); err != nil {
		return d, console.Exit(console.ExitFailed, fmt.Errorf("%w\n`toold serve` starts it in this terminal; `toold doctor` looks for what is wrong", err))
	}
	p, err := g.reach(ctx, cfg, client.Options{Silent: true})
	if err != nil {
		return d, console.Unreachable(err)
	}
	p.close()
	return d, nil
}

func (g *global) down(ctx context.Context, cfg config.Config, _ []string) error {
	notice := time.AfterFunc(5*time.Second, func() {
		fmt.Fprintln(g.Err, "toold: waiting for the daemon, which answers running calls first: toold calls")
	})
	d, ok, err := onboard.Stop(ctx, cfg.StateDir)
	notice.Stop()
	switch {
	case err != nil:
		return err
	case !ok:
		return g.Done(map[string]any{"stopped": false}, "no daemon runs")
	}
	return g.Done(map[string]any{"stopped": true, "pid": d.PID}, "the daemon has ended")
}
