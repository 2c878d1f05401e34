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
			"end is there, which a file beside it notes, that the large texts beside it are as they\n" +
			"were, and that the index, from which toold shows calls, says what the records say. Prints\n" +
			"the number of the last record and its hash; what was removed with limits.state_bytes or\n" +
			"limits.record_keep; and the bytes of incomplete records that toold has cut off. Names the\n" +
			"call of what is damaged, and the calls recorded after it. Whoever owns the machine can make all hashes anew: keep what is printed elsewhere, and\n" +
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
	r, err := journal.Verify(ctx, cfg.StateDir, kept)
	if errors.Is(err, journal.ErrTampered) {
		return &exitError{exitTampered, err}
	}
	if err != nil {
		return err
	}
	found := verified{Records: r.Number, Hash: hex.EncodeToString(r.Hash[:]), Removed: r.Gone}
	var text strings.Builder
	fmt.Fprintf(&text, "%d:%s\n", found.Records, found.Hash)
	if r.Gone > 0 {
		fmt.Fprintf(&text, "the first %d records were removed, as the configuration says (limits.state_bytes, limits.record_keep)\n", r.Gone)
	}
	for _, c := range r.Cuts {
		found.Cuts = append(found.Cuts, verifiedCut{c.Number, message.Instant(c.Time), c.Bytes, c.Text})
		fmt.Fprintf(&text, "%d bytes of an incomplete record were cut off the end when toold started (record %d, %s):\n%s", c.Bytes, c.Number, message.Instant(c.Time), hex.Dump(c.Text))
	}
	return g.print(found, text.String())
}

// verified is what `audit verify` prints as JSON.
type verified struct {
	Hash    string        `json:"hash"`
	Records uint64        `json:"records"`
	Removed uint64        `json:"removed,omitempty"`
	Cuts    []verifiedCut `json:"cuts,omitempty"`
}

type verifiedCut struct {
	Record uint64 `json:"record"`
	Time   string `json:"time"`
	Bytes  int64  `json:"bytes"`
	Text   []byte `json:"text"` // base64, the first of them
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
