package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
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
	cmd := &cobra.Command{Use: "audit", Short: "Check the journal, sign, anchor or write all of it"}
	v := &audit.Verify{}
	verify := &cobra.Command{
		Use: "verify [NUMBER:HASH]", Short: "Check that nothing of the journal was changed, added or removed", Args: cobra.MaximumNArgs(1),
		Long: "Checks each record of the journal against the hash that the next one has of it, that its\n" +
			"end is there, which a file beside it notes, that the large texts and the output of calls,\n" +
			"which are beside it, are as they were, that the index, from which toold shows calls, says\n" +
			"what the records say, and the signatures of its checkpoints. Prints the number of the last\n" +
			"record and its hash; what was removed with limits.state_bytes or limits.record_keep; and the\n" +
			"bytes of incomplete records that toold has cut off. Names the call of what is damaged, and\n" +
			"the calls recorded after it.\n" +
			"Whoever owns the machine can make all hashes and, with the key, all signatures anew: keep\n" +
			"what is printed elsewhere and name it later, or anchor checkpoints elsewhere (toold audit\n" +
			"anchor), to see that too. Ends with exit code 6 at the first record that does not fit. A\n" +
			"daemon may run meanwhile. With --postgres it checks what a team store has, of all daemons\n" +
			"or of those that --daemon names; there is no index and no output there, and each row has\n" +
			"to say what its record says.",
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
		Use: "accept", Short: "Note the end of the journal as it is now, for instance after restoring a backup", Args: cobra.NoArgs,
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
	if err := audit.Recorded(ctx, cfg); err != nil {
		return err
	}
	if err := journal.Accept(cfg.StateDir); err != nil {
		return err
	}
	return (&audit.Verify{Console: g.Console}).Run(ctx, g.remote, nil)
}

func exportCommand(g *global) *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use: "export [--to DIRECTORY]", Short: "Write each message of the journal as a line of JSON, the oldest first", Args: cobra.NoArgs,
		Long: "Writes each message of the journal as a line of JSON. With --to the lines go to a new\n" +
			"directory, with a manifest that is signed by the key of the journal: docs/verify_export.py,\n" +
			"which needs Python and no toold, checks that nothing of it was changed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return g.withRecord(cmd.Context(), func(ctx context.Context, record *journal.Journal) error {
				if dir != "" {
					m, err := audit.Export(ctx, record, dir)
					if err != nil {
						return err
					}
					return g.Print(m, dir+"\n")
				}
				_, err := audit.Lines(ctx, record, record.Last(), console.NewPrinter(g.Out, false))
				return err
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
	var file, repository, url string
	cmd := &cobra.Command{
		Use: "anchor {--file PATH | --git REPOSITORY | --postgres URL}", Short: "Keep a signed checkpoint of the journal elsewhere", Args: cobra.NoArgs,
		Long: "Signs the journal as it is now and writes that elsewhere: as a line of a file, as a commit of\n" +
			"the ref refs/toold/anchors of a git repository (push it to where this machine can only add),\n" +
			"or as a row of the table toold_anchors of a PostgreSQL database. toold audit verify --anchor\n" +
			"compares. It shows what was changed before the anchor for as long as who changes the journal\n" +
			"cannot change the place too. A password of the database is read from PGPASSWORD or\n" +
			"~/.pgpass; in the URL others could see it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var stores []anchor.Store
			if file != "" {
				stores = append(stores, anchor.File(file))
			}
			if repository != "" {
				stores = append(stores, anchor.Git(repository))
			}
			if url != "" {
				stores = append(stores, anchor.Postgres(url))
			}
			if len(stores) == 0 {
				return console.Usage(errors.New("name a place: --file, --git or --postgres"))
			}
			return g.withRecord(cmd.Context(), func(ctx context.Context, record *journal.Journal) error { return g.anchor(ctx, record, stores) })
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "`path` of a file to which a line is added")
	cmd.Flags().StringVar(&repository, "git", "", "`repository` in which a commit is made")
	cmd.Flags().StringVar(&url, "postgres", "", "`URL` of a database")
	return cmd
}

func (g *global) anchor(ctx context.Context, record *journal.Journal, stores []anchor.Store) error {
	c, err := record.Checkpoint()
	if err != nil {
		return err
	}
	for _, store := range stores {
		err = errors.Join(err, store.Add(ctx, c))
	}
	if err != nil {
		return err
	}
	return g.Print(c, fmt.Sprintf("%d:%x\n", c.Number, c.Hash))
}

func storeCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "store URL", Short: "List the daemons that write to a team store, and make its tables first", Args: one,
		Long: "Lists the daemons whose records are in a PostgreSQL database: the database user and the id\n" +
			"of the journal, how many records there are, and when the last was made. Makes the tables\n" +
			"when they are missing: the administrator of the database runs it once. A daemon writes\n" +
			"there when its configuration says so (audit.store).",
		RunE: func(cmd *cobra.Command, args []string) error { return g.listStore(cmd.Context(), args[0]) },
	}
}

func (g *global) listStore(ctx context.Context, url string) error {
	err := store.Prepare(ctx, url)
	var daemons []store.Daemon
	if err == nil {
		daemons, err = store.Daemons(ctx, url, "")
	}
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
		return audit.Tampered(err)
	case !done:
		return g.Print(map[string]any{"calls": 0}, fmt.Sprintf("there is no journal.db in %s: nothing to import\n", cfg.StateDir))
	}
	return g.Print(map[string]any{"calls": calls}, fmt.Sprintf("imported %d calls; the old journal is kept as journal.db.imported\n", calls))
}
