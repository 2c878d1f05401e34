package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/anchor"
	"github.com/toold/toold/internal/audit"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/store"
	"github.com/toold/toold/message"
)

func auditCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Verify, accept, anchor or export the journal"}
	v := &audit.Verify{}
	verify := &cobra.Command{
		Use: "verify [NUMBER:HASH]", Short: "Check that nothing of the journal was changed, added or removed", Args: optional,
		RunE: func(cmd *cobra.Command, args []string) error {
			v.Console = g.Console
			return v.Run(cmd.Context(), g.remote, args)
		},
	}
	verify.Flags().StringVar(&v.Key, "key", "", "`file` of public keys that were kept elsewhere; only these may have signed checkpoints")
	verify.Flags().StringArrayVar(&v.Anchors, "anchor", nil, "`place` of checkpoints that were kept elsewhere: file:PATH, git:REPOSITORY or postgres://HOST/DATABASE")
	verify.Flags().StringVar(&v.Store, "postgres", "", "`URL` of a team store, which is checked instead of the journal here")
	verify.Flags().StringVar(&v.Daemon, "daemon", "", "only a daemon in the store: `OWNER` or OWNER/ID")
	cmd.AddCommand(verify, &cobra.Command{
		Use: "accept", Short: "Record the present end of the journal as valid, for instance after restoring a backup", Args: cobra.NoArgs,
		RunE: g.remotely(g.accept),
	}, &cobra.Command{
		Use: "key", Short: "Print the public key that checkpoints are signed with", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.withRecord(cmd.Context(), g.publicKey) },
	}, anchorCommand(g), exportCommand(g), storeCommand(g))
	return cmd
}

func (g *global) withRecord(ctx context.Context, do func(context.Context, *journal.Journal) error) error {
	cfg, err := g.remote()
	if err != nil {
		return err
	}
	record, err := audit.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer record.Close()
	return audit.Tampered(do(ctx, record))
}

func (g *global) accept(ctx context.Context, cfg config.Config, _ []string) error {
	if err := audit.Accept(ctx, g.Console, cfg); err != nil {
		return err
	}
	return (&audit.Verify{Console: g.Console}).Run(ctx, g.remote, nil)
}

func exportCommand(g *global) *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use: "export [--to DIRECTORY]", Short: "Write each message of the journal as a line of JSON, the oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withRecord(cmd.Context(), func(ctx context.Context, record *journal.Journal) error {
				if dir == "" {
					_, err := audit.Lines(ctx, record, record.Last(), console.NewPrinter(g.Out, false))
					return err
				}
				m, err := audit.Export(ctx, record, dir)
				if err != nil {
					return err
				}
				return g.Print(m, dir+"\n")
			})
		},
	}
	cmd.Flags().StringVar(&dir, "to", "", "a new `directory` for the messages and a signed manifest")
	return cmd
}

func (g *global) publicKey(_ context.Context, record *journal.Journal) error {
	public := record.Key().Public()
	text, err := seal.EncodePublic(public)
	if err != nil {
		return err
	}
	return g.Print(map[string]any{"id": seal.ID(public), "key": hex.EncodeToString(public), "pem": text}, text)
}

func anchorCommand(g *global) *cobra.Command {
	places := map[string]func(string) anchor.Store{"file": anchor.File, "git": anchor.Git, "postgres": anchor.Postgres}
	cmd := &cobra.Command{
		Use: "anchor {--file PATH | --git REPOSITORY | --postgres URL}", Short: "Keep a signed checkpoint of the journal elsewhere", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var stores []anchor.Store
			for _, name := range slices.Sorted(maps.Keys(places)) {
				if at := cmd.Flag(name).Value.String(); at != "" {
					stores = append(stores, places[name](at))
				}
			}
			if len(stores) == 0 {
				return console.Usage(errors.New("name a place: --file, --git or --postgres"))
			}
			return g.withRecord(cmd.Context(), func(ctx context.Context, record *journal.Journal) error { return g.anchor(ctx, record, stores) })
		},
	}
	cmd.Flags().String("file", "", "`path` of a file to which a line is added")
	cmd.Flags().String("git", "", "`repository` in which a commit is made")
	cmd.Flags().String("postgres", "", "`URL` of a database")
	return cmd
}

func (g *global) anchor(ctx context.Context, record *journal.Journal, stores []anchor.Store) error {
	c, err := record.Checkpoint()
	if err != nil {
		return err
	}
	var failed []error
	for _, store := range stores {
		if err := store.Add(ctx, c); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) < len(stores) {
		failed = append(failed, g.Print(c, fmt.Sprintf("%d:%x\n", c.Number, c.Hash)))
	}
	return errors.Join(failed...)
}

func storeCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "store URL", Short: "Create the tables of a team store if they are missing, and list the daemons that write to it", Args: one,
		RunE: func(cmd *cobra.Command, args []string) error { return g.listStore(cmd.Context(), args[0]) },
	}
}

func (g *global) listStore(ctx context.Context, url string) error {
	if err := store.Prepare(ctx, url); err != nil {
		return err
	}
	daemons, err := store.Daemons(ctx, url, "")
	if err != nil {
		return err
	}
	list, rows := []map[string]any{}, [][]string{}
	for _, d := range daemons {
		list = append(list, map[string]any{"daemon": d.Name(), "last": d.Last.Number, "time": message.Instant(d.Time)})
		rows = append(rows, []string{display.Short(d.Name()), fmt.Sprint(d.Last.Number), d.Time.Local().Format(time.DateTime)})
	}
	return g.List(list, rows, "toold: no daemon has written here yet")
}

func journalCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "journal", Short: "Import the journal of an older toold"}
	accept := false
	imports := &cobra.Command{
		Use: "import", Short: "Import journal.db of 0.1.0-dev", Args: cobra.NoArgs,
		RunE: g.remotely(func(ctx context.Context, cfg config.Config, _ []string) error {
			return g.importJournal(ctx, cfg, accept)
		}),
	}
	imports.Flags().BoolVar(&accept, "accept", false, "import a journal even if it was changed from outside")
	cmd.AddCommand(imports)
	return cmd
}

func (g *global) importJournal(ctx context.Context, cfg config.Config, accept bool) error {
	calls, done, err := journal.Import(ctx, cfg.StateDir, accept)
	switch {
	case err != nil:
		return audit.Tampered(err)
	case !done:
		return g.Print(map[string]any{"calls": 0}, fmt.Sprintf("there is no journal.db in %s: nothing to import\n", cfg.StateDir))
	}
	return g.Print(map[string]any{"calls": calls}, fmt.Sprintf("imported %d calls; the old journal is kept as journal.db.imported\n", calls))
}
