package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toold/toold/internal/anchor"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/store"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox/quarantine"
)

// Verify checks a journal or a team store.
type Verify struct {
	console.Console
	Key     string   // file with the only keys that may have signed; "" = any key
	Anchors []string // in the notation of anchor.Parse
	Store   string   // connection string of a team store; "" = the local journal
	Daemon  string   // in the store; "" = all
}

// Run verifies the journal and prints the result. noted is at most one NUMBER:HASH that the user kept elsewhere. load
// returns the configuration; it is not called if Store is set.
func (v *Verify) Run(ctx context.Context, load func() (config.Config, error), noted []string) error {
	checks, err := v.checks(ctx, noted)
	switch {
	case err != nil:
		return err
	case v.Store != "":
		return v.inStore(ctx, checks)
	case v.Daemon != "":
		return console.Usage(ErrNoStore)
	}
	cfg, err := load()
	if err == nil {
		err = Recorded(ctx, cfg)
	}
	if err != nil {
		return err
	}
	output := func(call journal.Key) (string, error) { return daemon.OutputSum(cfg, call) }
	r, err := journal.Verify(ctx, cfg.StateDir, checks, output)
	if err = errors.Join(Tampered(err), checkQuarantine(cfg.QuarantineDir())); err != nil {
		return err
	}
	return v.found("", r)
}

// checkQuarantine returns an error if a copy of something removed differs from the checksum in its id.
func checkQuarantine(dir string) error {
	items, err := quarantine.Items(dir)
	for _, i := range items {
		if bad := i.Check(); bad != nil && !errors.Is(bad, quarantine.ErrPartial) {
			bad = fmt.Errorf("the copy %s of what was removed: %w; toold quarantine remove %s goes on without it", filepath.Dir(i.Kept), bad, i.ID)
			err = errors.Join(err, console.Exit(console.ExitTampered, bad))
		}
	}
	return err
}

// Accept records the current end of the journal as valid, and prints what it has set aside.
func Accept(ctx context.Context, c console.Console, cfg config.Config) error {
	if err := Recorded(ctx, cfg); err != nil {
		return err
	}
	aside, err := journal.Accept(cfg.StateDir)
	for _, name := range aside {
		fmt.Fprintf(c.Err, "toold: set aside, because it does not verify: %s\n", filepath.Join(cfg.StateDir, "journal", name))
	}
	return err
}

func (v *Verify) checks(ctx context.Context, noted []string) (c seal.Checks, err error) {
	if len(noted) == 1 {
		if c.Kept, err = parseLink(noted[0]); err != nil {
			return c, err
		}
	}
	if v.Key != "" {
		text, err := os.ReadFile(v.Key)
		if err == nil {
			c.Keys, err = seal.DecodePublic(text)
		}
		if err != nil {
			return c, console.Usage(fmt.Errorf("cannot read the keys in %s: %w", v.Key, err))
		}
	}
	for _, name := range v.Anchors {
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

// found prints the result for a daemon in a store or, with "", for the local journal.
func (v *Verify) found(daemon string, r journal.Report) error {
	found := verified{Daemon: daemon, Records: r.Number, Hash: hex.EncodeToString(r.Hash[:]), First: message.Instant(r.First), Latest: message.Instant(r.Latest), Removed: r.Gone, Checkpoints: r.Count, Signed: r.Signed, Anchors: r.Met, Others: r.Other}
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
		fmt.Fprintf(&text, "%d bytes were cut off the end when toold started, or set aside by toold audit accept (record %d, %s):\n%s", c.Bytes, c.Number, message.Instant(c.Time), hex.Dump(c.Text))
	}
	v.note(found)
	return v.Print(found, text.String())
}

func (v *Verify) note(found verified) {
	if v.JSON {
		return
	}
	fmt.Fprintf(v.Err, "toold: nothing was changed: %d records, from %s to %s, and number %d at the end has the hash %s\n", found.Records-found.Removed, found.First, found.Latest, found.Records, found.Hash)
	if found.Checkpoints == 0 {
		fmt.Fprintln(v.Err, "toold: no record is signed yet")
	} else {
		fmt.Fprintf(v.Err, "toold: %s, signed up to record %d by key %s\n", describe.Count(found.Checkpoints, "checkpoint"), found.Signed, strings.Join(found.Keys, ", "))
	}
	if len(v.Anchors) > 0 {
		fmt.Fprintf(v.Err, "toold: %d anchors fit, and %d are of other journals\n", found.Anchors, found.Others)
	}
}

type verified struct {
	Daemon      string        `json:"daemon,omitempty"`
	Hash        string        `json:"hash"`
	Records     uint64        `json:"records"`
	First       string        `json:"first"`  // time of the first kept record
	Latest      string        `json:"latest"` // time of the last record
	Checkpoints int           `json:"checkpoints"`
	Signed      uint64        `json:"signed"` // number of the last signed record
	Keys        []string      `json:"keys"`
	Anchors     int           `json:"anchors,omitempty"`
	Others      int           `json:"other_anchors,omitempty"` // anchors of other journals
	Removed     uint64        `json:"removed,omitempty"`
	Cuts        []verifiedCut `json:"cuts,omitempty"`
}

type verifiedCut struct {
	Record uint64 `json:"record"`
	Time   string `json:"time"`
	Bytes  int64  `json:"bytes"`
	Text   []byte `json:"text"` // the first bytes that were cut
}

func parseLink(text string) (l seal.Link, err error) {
	number, hash, _ := strings.Cut(text, ":")
	l.Number, err = strconv.ParseUint(number, 10, 64)
	want, bad := hex.DecodeString(hash)
	isHash := bad == nil && len(want) == len(l.Hash)
	if err != nil || l.Number == 0 || !isHash {
		return l, console.Usage(fmt.Errorf("cannot read %q: write NUMBER:HASH as audit verify prints it", text))
	}
	copy(l.Hash[:], want)
	return l, nil
}

// ErrNoStore reports a daemon without a store.
var ErrNoStore = errors.New("--daemon names a daemon in a team store: name that with --postgres")

func (v *Verify) inStore(ctx context.Context, checks seal.Checks) error {
	daemons, err := store.Daemons(ctx, v.Store, v.Daemon)
	switch {
	case err != nil:
		return err
	case len(daemons) == 0:
		return console.Exit(console.ExitTampered, errors.New("the store has no record of such a daemon: it did not write yet, this user may not read that, or the rows were removed"))
	case len(daemons) > 1 && checks.Kept != seal.Link{}:
		return console.Usage(errors.New("NUMBER:HASH is of one daemon: name it with --daemon"))
	}
	var failed error
	for _, d := range daemons {
		r, err := store.Verify(ctx, v.Store, d, checks)
		if err == nil {
			err = v.found(d.Name(), r)
		} else {
			err = fmt.Errorf("%s: %w", display.Short(d.Name()), err)
		}
		failed = errors.Join(failed, err)
	}
	return Tampered(failed)
}

// mostUnread limits the listed messages, since clients of a store can add any number of calls.
const mostUnread = 10

func (l *Log) collectStore(ctx context.Context, q journal.CallQuery) (calls []logged, err error) {
	unread := 0
	err = store.List(ctx, l.Store, l.Daemon, q, func(c store.Call) bool {
		if c.Err != nil {
			if unread++; unread <= mostUnread {
				fmt.Fprintf(l.Err, "toold: a call of %s cannot be read: %s; toold audit verify --postgres looks at all of it\n", display.Short(c.Daemon), display.Short(c.Err.Error()))
			}
		} else if l.wants(c.Record) {
			found := newLogged(c.Record)
			found.daemon = c.Daemon
			calls = append(calls, found)
		}
		return len(calls) < l.Most
	})
	if more := unread - mostUnread; more > 0 {
		fmt.Fprintf(l.Err, "toold: %d more calls cannot be read\n", more)
	}
	return calls, err
}
