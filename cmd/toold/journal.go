package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/journal"
)

func journalCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "journal", Short: "Take over the journal of an older toold"}
	accept := false
	imports := &cobra.Command{
		Use: "import", Short: "Import journal.db of 0.1.0-dev", Args: cobra.NoArgs,
		Long: "Imports journal.db of 0.1.0-dev, as toold does when it starts, and keeps it as\n" +
			"journal.db.imported. One that was changed from outside is imported only with --accept.",
		RunE: g.remotely(func(ctx context.Context, cfg config.Config, _ []string) error {
			return g.importJournal(ctx, cfg, accept)
		}),
	}
	imports.Flags().BoolVar(&accept, "accept", false, "import a journal that was changed from outside as it is")
	cmd.AddCommand(imports)
	return cmd
}

func (g *global) importJournal(ctx context.Context, cfg config.Config, accept bool) error {
	calls, done, err := journal.Import(ctx, cfg.StateDir, accept)
	switch {
	case err != nil:
		return tampered(err)
	case !done:
		return g.Print(map[string]any{"calls": 0}, fmt.Sprintf("there is no journal.db in %s: nothing to import\n", cfg.StateDir))
	}
	return g.Print(map[string]any{"calls": calls}, fmt.Sprintf("imported %d calls; the old journal is kept as journal.db.imported\n", calls))
}
