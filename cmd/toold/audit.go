package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/anchor"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/message"
)

func auditCommand(g *global) *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Check the journal, sign, anchor or write all of it"}
	v := &verifyRun{global: g}
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
		RunE: func(cmd *cobra.Command, args []string) error { return v.run(cmd.Context(), args) },
	}
	verify.Flags().StringVar(&v.key, "key", "", "`file` of public keys that were kept elsewhere; only these may have signed checkpoints")
	verify.Flags().StringArrayVar(&v.anchors, "anchor", nil, "`place` of checkpoints that were kept elsewhere: file:PATH, git:REPOSITORY or postgres://HOST/DATABASE")
	verify.Flags().StringVar(&v.store, "postgres", "", "`URL` of a team store, which is checked instead of the journal here")
	verify.Flags().StringVar(&v.daemon, "daemon", "", "only a daemon in the store: `OWNER` or OWNER/ID")
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
	record, err := openRecord(ctx, cfg)
	if err != nil {
		return err
	}
	defer record.Close()
	return tampered(do(ctx, record))
}

func tampered(err error) error {
	if errors.Is(err, journal.ErrTampered) {
		return console.Exit(console.ExitTampered, err)
	}
	return err
}

type verifyRun struct {
	*global
	key     string
	anchors []string
	store   string // "" = the journal here
	daemon  string // in the store; "" = all
}

func (v *verifyRun) run(ctx context.Context, noted []string) error {
	checks, err := v.checks(ctx, noted)
	switch {
	case err != nil:
		return err
	case v.store != "":
		return v.inStore(ctx, checks)
	case v.daemon != "":
		return console.Usage(errNoStore)
	}
	cfg, err := v.remote()
	if err == nil {
		err = recorded(ctx, cfg)
	}
	if err != nil {
		return err
	}
	checks.Output = func(call journal.Key) (string, error) { return daemon.OutputSum(cfg, call) }
	r, err := journal.Verify(ctx, cfg.StateDir, checks)
	if err != nil {
		return tampered(err)
	}
	return v.found("", r)
}

func (v *verifyRun) checks(ctx context.Context, noted []string) (c journal.Checks, err error) {
	if len(noted) == 1 {
		if c.Kept, err = parseLink(noted[0]); err != nil {
			return c, err
		}
	}
	if v.key != "" {
		text, err := os.ReadFile(v.key)
		if err == nil {
			c.Keys, err = seal.DecodePublic(text)
		}
		if err != nil {
			return c, console.Usage(fmt.Errorf("cannot read the keys in %s: %w", v.key, err))
		}
	}
	for _, name := range v.anchors {
		store, err := anchor.Parse(name)
		if err != nil {
			return c, console.Usage(err)
		}
		list, err := store.All(ctx)
		if err != nil {
			return c, err
		}
		if len(list) == 0 {
			return c, console.Exit(console.ExitTampered, fmt.Errorf("there is no anchor in %s: whatever was anchored there was removed, or `toold audit anchor` did not run yet", name))
		}
		c.Anchors = append(c.Anchors, list...)
	}
	return c, nil
}

func (v *verifyRun) found(daemon string, r journal.Report) error {
	found := verified{Daemon: daemon, Records: r.Number, Hash: hex.EncodeToString(r.Hash[:]), Removed: r.Gone, Checkpoints: r.Count, Signed: r.Signed, Anchors: r.Met}
	for _, k := range r.Keys {
		found.Keys = append(found.Keys, seal.ID(k))
	}
	var text strings.Builder
	if daemon != "" {
		text.WriteString(display.Short(daemon) + " ")
	}
	fmt.Fprintf(&text, "%d:%s\n", found.Records, found.Hash)
	if r.Gone > 0 {
		fmt.Fprintf(&text, "the first %d records were removed, as the configuration says (limits.state_bytes, limits.record_keep)\n", r.Gone)
	}
	for _, c := range r.Cuts {
		found.Cuts = append(found.Cuts, verifiedCut{c.Number, message.Instant(c.Time), c.Bytes, c.Text})
		fmt.Fprintf(&text, "%d bytes of an incomplete record were cut off the end when toold started (record %d, %s):\n%s", c.Bytes, c.Number, message.Instant(c.Time), hex.Dump(c.Text))
	}
	v.note(found)
	return v.Print(found, text.String())
}

func (v *verifyRun) note(found verified) {
	if v.JSON {
		return
	}
	if found.Checkpoints == 0 {
		fmt.Fprintln(v.Err, "toold: no record is signed yet")
	} else {
		fmt.Fprintf(v.Err, "toold: %d checkpoints, signed up to record %d by key %s\n", found.Checkpoints, found.Signed, strings.Join(found.Keys, ", "))
	}
	if len(v.anchors) > 0 {
		fmt.Fprintf(v.Err, "toold: %d anchors fit\n", found.Anchors)
	}
}

type verified struct {
	Daemon      string        `json:"daemon,omitempty"`
	Hash        string        `json:"hash"`
	Records     uint64        `json:"records"`
	Checkpoints int           `json:"checkpoints"`
	Signed      uint64        `json:"signed"` // number of the last signed record
	Keys        []string      `json:"keys"`
	Anchors     int           `json:"anchors,omitempty"`
	Removed     uint64        `json:"removed,omitempty"`
	Cuts        []verifiedCut `json:"cuts,omitempty"`
}

type verifiedCut struct {
	Record uint64 `json:"record"`
	Time   string `json:"time"`
	Bytes  int64  `json:"bytes"`
	Text   []byte `json:"text"` // the first of them
}

func parseLink(text string) (l journal.Link, err error) {
	number, hash, _ := strings.Cut(text, ":")
	l.Number, err = strconv.ParseUint(number, 10, 64)
	want, bad := hex.DecodeString(hash)
	if err != nil || bad != nil || l.Number == 0 || len(want) != len(l.Hash) {
		return l, console.Usage(fmt.Errorf("cannot read %q: write NUMBER:HASH as audit verify prints it", text))
	}
	copy(l.Hash[:], want)
	return l, nil
}

func (g *global) accept(ctx context.Context, cfg config.Config, _ []string) error {
	if err := recorded(ctx, cfg); err != nil {
		return err
	}
	if err := journal.Accept(cfg.StateDir); err != nil {
		return err
	}
	return (&verifyRun{global: g}).run(ctx, nil)
}
