package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
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
		RunE: func(*cobra.Command, []string) error { return g.listQuarantine() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "restore ID", Short: "Put something back to where it was; nothing is replaced", Args: one,
		Long: "Put something back to where it was. Nothing is replaced and no link followed. Do it while\n" +
			"no call runs in that workspace: else that call is ended, and it is removed again.",
		RunE: func(_ *cobra.Command, args []string) error { return g.restore(args[0]) },
	}, &cobra.Command{
		Use: "remove ID", Short: "Remove something for good", Args: one,
		RunE: func(_ *cobra.Command, args []string) error { return g.discard(args[0]) },
	})
	return cmd
}

func (g *global) listQuarantine() error {
	cfg, err := g.remote()
	if err != nil {
		return err
	}
	items, err := quarantine.Items(daemon.QuarantineDir(cfg))
	if err != nil {
		return &exitError{exitFailed, err}
	}
	rows := make([][]string, len(items))
	for n, i := range items {
		rows[n] = []string{i.ID, i.At.Local().Format(time.DateTime), size(i.Bytes), display.Visible(i.From)}
	}
	if err := g.list(append([]quarantine.Item{}, items...), rows, "nothing was removed"); err != nil {
		return err
	}
	if len(items) > 0 && !g.json {
		fmt.Fprintf(g.std.err, "each is in %s/ID/taken; toold quarantine restore ID puts it back\n", daemon.QuarantineDir(cfg))
	}
	return nil
}

func (g *global) restore(id string) error {
	cfg, err := g.remote()
	if err != nil {
		return err
	}
	path, err := quarantine.Restore(daemon.QuarantineDir(cfg), id)
	if err != nil {
		return &exitError{exitFailed, err}
	}
	return g.done(map[string]any{"id": id, "restored": path}, "put back: "+display.Visible(path))
}

func (g *global) discard(id string) error {
	cfg, err := g.remote()
	if err != nil {
		return err
	}
	if err := quarantine.Discard(daemon.QuarantineDir(cfg), id); err != nil {
		return &exitError{exitFailed, err}
	}
	return g.done(map[string]any{"id": id, "removed": true}, "removed "+display.Visible(id))
}

// quarantineFinding reports how much was removed and is kept.
func quarantineFinding(cfg config.Config) finding {
	f := finding{Name: "quarantine", OK: true}
	items, err := quarantine.Items(daemon.QuarantineDir(cfg))
	if err != nil {
		return finding{Name: f.Name, Is: err.Error(), Mend: "ls -la " + daemon.QuarantineDir(cfg)}
	}
	total := int64(0)
	for _, i := range items {
		total += i.Bytes
	}
	if f.Is = "nothing was removed"; len(items) > 0 {
		f.Is = fmt.Sprintf("%d removed, %s; toold quarantine lists them", len(items), size(total))
	}
	return f
}

// size writes a number of bytes for people.
func size(n int64) string {
	const mib = 1 << 20
	if n < mib {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MiB", (n+mib/2)/mib)
}
