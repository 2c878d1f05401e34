package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/daemon"
)

func policyUndoCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "undo", Short: "Take the rule of the last remembered answer out of the policy", Args: cobra.NoArgs,
		Long: "Takes out of your policy file what the last answer with --remember command, prefix or\nrule has written. Called again, it takes out the one before. What was changed by hand\nsince stays as it is, and is named. A running daemon notices.",
		RunE: g.remotely(func(_ context.Context, cfg config.Config, _ []string) error {
			e, err := daemon.Undo(cfg.StateDir)
			if err != nil {
				return err
			}
			var lines []string
			for _, c := range e.Changes {
				lines = append(lines, c.Text(e.File))
			}
			return g.print(e, fmt.Sprintf("%s: taken out, as %s remembered it on %s\n%s", e.File, oneLine(e.Person), e.At.Local().Format(time.DateTime), bullets(lines)))
		}),
	}
}
