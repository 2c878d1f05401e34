package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/anchor"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/seal"
)

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
