package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

func auditCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Check the journal, or write all of it"}
	cmd.AddCommand(&cobra.Command{
		Use: "verify [NUMBER:HASH]", Short: "Check that nothing of the journal was changed, added or removed", Args: cobra.MaximumNArgs(1),
		Long: "Checks each record of the journal against the hash that the next one has of it, that its\n" +
			"end is there, which a file beside it notes, and that the index, from which toold shows\n" +
			"calls, says what the records say. Prints the number of records and the hash of the last\n" +
			"one. Whoever owns the machine can make all hashes anew: keep what is printed elsewhere, and\n" +
			"name it later, to see that too. Ends with exit code 6 at the first record that does not\n" +
			"fit. A daemon may run meanwhile.",
		RunE: func(cmd *cobra.Command, args []string) error { return g.verify(cmd.Context(), args) },
	}, &cobra.Command{
		Use: "accept", Short: "Note the end of the journal as it is now, for instance after restoring a backup", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.accept(cmd.Context()) },
	}, &cobra.Command{
		Use: "export", Short: "Write each message of the journal as a line of JSON, the oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.withRecord(cmd.Context(), g.export) },
	})
	return cmd
}

// withRecord does something with the journal.
func (g *global) withRecord(ctx context.Context, do func(context.Context, *journal.Journal) error) error {
	cfg, err := g.remote()
	if err != nil {
		return err
	}
	record, err := openRecord(ctx, cfg)
	if err != nil {
		return err
	}
	defer record.Close()
	err = do(ctx, record)
	if errors.Is(err, journal.ErrTampered) {
		return &exitError{exitTampered, err}
	}
	return err
}

// verify checks the journal, and that it has a link that was noted.
func (g *global) verify(ctx context.Context, noted []string) error {
	cfg, err := g.remote()
	if err == nil {
		err = recorded(ctx, cfg)
	}
	var kept journal.Link
	if err == nil && len(noted) == 1 {
		kept, err = parseLink(noted[0])
	}
	if err != nil {
		return err
	}
	last, err := journal.Verify(ctx, cfg.StateDir, kept)
	if errors.Is(err, journal.ErrTampered) {
		return &exitError{exitTampered, err}
	}
	if err != nil {
		return err
	}
	return g.print(map[string]any{"records": last.Number, "hash": hex.EncodeToString(last.Hash[:])}, fmt.Sprintf("%d:%x\n", last.Number, last.Hash))
}

// parseLink reads what verify prints.
func parseLink(text string) (l journal.Link, err error) {
	number, hash, _ := strings.Cut(text, ":")
	l.Number, err = strconv.ParseUint(number, 10, 64)
	want, bad := hex.DecodeString(hash)
	if err != nil || bad != nil || l.Number == 0 || len(want) != len(l.Hash) {
		return l, &exitError{exitUsage, fmt.Errorf("cannot read %q: write NUMBER:HASH as audit verify prints it", text)}
	}
	copy(l.Hash[:], want)
	return l, nil
}

// accept notes the journal as it is.
func (g *global) accept(ctx context.Context) error {
	cfg, err := g.remote()
	if err != nil {
		return err
	}
	if err := recorded(ctx, cfg); err != nil {
		return err
	}
	if err := journal.Accept(cfg.StateDir); err != nil {
		return err
	}
	return g.verify(ctx, nil)
}

// exported is a message of the journal.
type exported struct {
	Number    int64             `json:"number"`
	Time      string            `json:"time"`
	Direction journal.Direction `json:"direction"`
	Client    string            `json:"client"`
	Message   json.RawMessage   `json:"message"`
}

func (g *global) export(ctx context.Context, record *journal.Journal) error {
	query := journal.Query{Ascending: true, Limit: 1000}
	for {
		page, err := record.List(ctx, query)
		if err != nil {
			return err
		}
		for _, m := range page.Messages {
			if err := g.emit(exported{m.Seq, message.Instant(m.Time), m.Direction, m.Client, message.WholeReturn(m.Body)}); err != nil {
				return err
			}
		}
		if !page.HasMore {
			return nil
		}
		query.After = page.NextAfter
	}
}
