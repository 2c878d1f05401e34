package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/audit"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/journal"
)

func logCommand(g *global) *cobra.Command {
	l := &audit.Log{}
	cmd := &cobra.Command{
		Use: "log", Short: "List the calls of the journal, the latest last", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("workspace") {
				l.Workspace = g.options.Workspace
			}
			l.Console = g.Console
			if err := l.Check(); err != nil {
				return console.Usage(err)
			}
			if l.Store != "" {
				return l.Run(cmd.Context(), nil)
			}
			return g.withRecord(cmd.Context(), l.Run)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&l.Since, "since", "36500d", "how far to look back, e.g. `30d` or 12h, or from a date, e.g. 2026-01-31")
	flags.IntVarP(&l.Most, "lines", "n", 100, "at most so many `calls`, the latest")
	flags.StringVar(&l.Tool, "tool", "", "only calls of a `tool`")
	flags.StringVar(&l.Agent, "agent", "", "only calls of an agent, by its agent_`id` or the name of its token")
	flags.StringVar(&l.Action, "decision", "", "only calls that were decided so: allow, ask (waits), deny; or asked: a person was to decide")
	flags.StringVar(&l.Text, "grep", "", "only calls whose line, arguments or result contain a `text`")
	flags.BoolVarP(&l.Follow, "follow", "f", false, "go on with calls as they end")
	flags.StringVar(&l.Store, "postgres", "", "`URL` of a team store, which is read instead of the journal here")
	flags.StringVar(&l.Daemon, "daemon", "", "only calls of a daemon in the store: `OWNER` or OWNER/ID")
	return cmd
}

func showCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Print what the journal knows of a call", Args: one,
		RunE: func(cmd *cobra.Command, args []string) error {
			return g.withRecord(cmd.Context(), func(ctx context.Context, log *journal.Journal) error { return audit.Show(ctx, g.Console, log, args[0]) })
		},
	}
}
