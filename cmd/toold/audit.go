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
		Long: "Checks each message, call and argument of the journal against the hashes that were recorded\n" +
			"with it, and that its end is there, which the file head notes. Prints the number of messages\n" +
			"and a hash of all. Whoever owns the machine can make all hashes anew: keep what is printed\n" +
			"elsewhere, and name it later, to see that too. Ends with exit code 6 at the first record\n" +
			"that does not fit. A daemon may run meanwhile.",
		RunE: func(cmd *cobra.Command, args []string) error { return g.withRecord(cmd.Context(), verifier(g, args)) },
	}, &cobra.Command{
		Use: "accept", Short: "Note the end of the journal as it is now, for instance after restoring a backup", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return g.withRecord(cmd.Context(), g.accept) },
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

// verifier checks the chain of messages, and that it has a link that was noted.
func verifier(g *global, noted []string) func(context.Context, *journal.Journal) error {
	return func(ctx context.Context, record *journal.Journal) error {
		if len(noted) == 1 {
			if err := hasLink(ctx, record, noted[0]); err != nil {
				return err
			}
		}
		if err := record.Verify(ctx); err != nil {
			return err
		}
		last, hash, err := record.Link(ctx)
		if errors.Is(err, journal.ErrNotFound) {
			return g.print(map[string]any{"messages": 0}, "the journal holds no message\n")
		}
		if err != nil {
			return err
		}
		return g.print(map[string]any{"messages": last, "hash": hex.EncodeToString(hash)}, fmt.Sprintf("%d:%x\n", last, hash))
	}
}

// hasLink checks that a message has the hash it had when that was noted.
func hasLink(ctx context.Context, record *journal.Journal, noted string) error {
	number, text, _ := strings.Cut(noted, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	want, bad := hex.DecodeString(text)
	if err != nil || bad != nil || seq < 1 || len(want) == 0 {
		return &exitError{exitUsage, fmt.Errorf("cannot read %q: write NUMBER:HASH as audit verify prints it", noted)}
	}
	linked, err := record.Linked(ctx, seq, want)
	if err != nil {
		return err
	}
	if !linked {
		return fmt.Errorf("%w: message number %d is not the one that was noted", journal.ErrTampered, seq)
	}
	return nil
}

// accept notes the journal as it is.
func (g *global) accept(ctx context.Context, record *journal.Journal) error {
	if err := record.Accept(ctx); err != nil {
		return err
	}
	return verifier(g, nil)(ctx, record)
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
