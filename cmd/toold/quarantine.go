package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/sandbox/quarantine"
)

func quarantineCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{
		Use: "quarantine", Short: "List copies of what was removed from the workspace, put them back or remove them", Args: cobra.NoArgs,
		Long: "List what appeared in a workspace under a protected name while a call ran, and was\n" +
			"removed (sandbox.protect). A command may have made it: look at it before you put it back.\n" +
			"The copies are kept for limits.quarantine_keep, and while limits.state_bytes has room.",
		RunE: g.remotely(g.listQuarantine),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "restore ID", Short: "Put something back to where it was; nothing is replaced", Args: one,
		Long: "Put something back to where it was. Nothing is replaced and no link followed. Do it while\n" +
			"no call runs in that workspace: else that call is ended, and it is removed again.",
		RunE: g.remotely(g.restore),
	}, &cobra.Command{
		Use: "remove ID", Short: "Remove something for good", Args: one,
		RunE: g.remotely(g.discard),
	})
	return cmd
}

func (g *global) listQuarantine(_ context.Context, cfg config.Config, _ []string) error {
	items, err := quarantine.Items(daemon.QuarantineDir(cfg))
	if err != nil {
		return err
	}
	rows := make([][]string, len(items))
	for n, i := range items {
		rows[n] = []string{i.ID, i.At.Local().Format(time.DateTime), console.Size(i.Bytes), display.Visible(i.From)}
	}
	if err := g.List(append([]quarantine.Item{}, items...), rows, "nothing was removed"); err != nil {
		return err
	}
	if len(items) > 0 && !g.JSON {
		fmt.Fprintf(g.Err, "each is in %s/ID/taken; toold quarantine restore ID puts it back\n", daemon.QuarantineDir(cfg))
	}
	return nil
}

func (g *global) restore(_ context.Context, cfg config.Config, args []string) error {
	path, err := quarantine.Restore(daemon.QuarantineDir(cfg), args[0])
	if err != nil {
		return err
	}
	return g.Done(map[string]any{"id": args[0], "restored": path}, "put back: "+display.Visible(path))
}

func (g *global) discard(_ context.Context, cfg config.Config, args []string) error {
	id := args[0]
	if err := quarantine.Discard(daemon.QuarantineDir(cfg), id); err != nil {
		return err
	}
	return g.Done(map[string]any{"id": id, "removed": true}, "removed "+display.Visible(id))
}
