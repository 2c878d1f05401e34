package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
)

func reloadCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Make the running daemon take up its policy files", Args: cobra.NoArgs,
		Long: "Makes the running daemon take up its policy files as they are now. It notices changes\n" +
			"of the files by itself; this command tells whether they are good. A faulty policy does\n" +
			"not take the place of the one that holds. Calls that run are not affected; calls that\n" +
			"wait for a person are judged again.",
		RunE: g.remotely(g.reload),
	}
}

func (g *global) reload(ctx context.Context, cfg config.Config, _ []string) error {
	answer, err := g.daemon(cfg).Reload(ctx, http.MethodPost)
	if err != nil {
		return console.Exit(console.ExitUnreachable, err)
	}
	if g.JSON {
		if err := g.Emit(answer); err != nil {
			return err
		}
	}
	if answer.Error != "" {
		return console.Exit(console.ExitConfig, fmt.Errorf("%s\nthe last good policy stays in force", answer.Error))
	}
	for _, w := range answer.Warnings {
		fmt.Fprintln(g.Err, "toold: warning:", w)
	}
	fmt.Fprintln(g.Err, "the daemon follows", answer.Policy)
	return nil
}
