package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/store"
	"github.com/toold/toold/message"
)

var errNoStore = errors.New("--daemon names a daemon in a team store: name that with --postgres")

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

func (v *verifyRun) inStore(ctx context.Context, checks journal.Checks) error {
	daemons, err := store.Daemons(ctx, v.store, v.daemon)
	switch {
	case err != nil:
		return err
	case len(daemons) == 0:
		return console.Exit(console.ExitTampered, errors.New("the store has no record of such a daemon: it did not write yet, this user may not read that, or the rows were removed"))
	case len(daemons) > 1 && checks.Kept != journal.Link{}:
		return console.Usage(errors.New("NUMBER:HASH is of one daemon: name it with --daemon"))
	}
	var failed error
	for _, d := range daemons {
		r, err := store.Verify(ctx, v.store, d, checks)
		if err == nil {
			err = v.found(d.Name(), r)
		} else {
			err = fmt.Errorf("%s: %w", display.Short(d.Name()), err)
		}
		failed = errors.Join(failed, err)
	}
	return tampered(failed)
}

// mostUnread bounds messages: clients of a store can add any number of calls.
const mostUnread = 10

func (l *logRun) collectStore(ctx context.Context, q journal.CallQuery) (calls []logged, err error) {
	unread := 0
	err = store.List(ctx, l.store, l.daemon, q, func(c store.Call) bool {
		if c.Err != nil {
			if unread++; unread <= mostUnread {
				fmt.Fprintf(l.Err, "toold: a call of %s cannot be read: %s; toold audit verify --postgres looks at all of it\n", display.Short(c.Daemon), display.Short(c.Err.Error()))
			}
		} else if l.wants(c.Record) {
			found := newLogged(c.Record)
			found.daemon = c.Daemon
			calls = append(calls, found)
		}
		return len(calls) < l.most
	})
	if more := unread - mostUnread; more > 0 {
		fmt.Fprintf(l.Err, "toold: %d more calls cannot be read\n", more)
	}
	return calls, err
}

func storeFinding(ctx context.Context, cfg config.Config) []finding {
	if cfg.Store == "" {
		return nil
	}
	f := finding{Name: "team store", Fix: "calls go on without it; the record is kept here until the store has it"}
	record, err := openRecord(ctx, cfg)
	if err == nil {
		defer record.Close()
	} else {
		record = nil // stateFinding reports the error
	}
	lacks, err := store.Check(ctx, cfg.Store, record)
	switch {
	case err != nil:
		f.Is = err.Error()
	case lacks > 0:
		f.OK, f.Is = true, fmt.Sprintf("it lacks %d records, which a running daemon copies", lacks)
	default:
		f.OK, f.Is = true, "it has the whole journal"
	}
	return []finding{f}
}
