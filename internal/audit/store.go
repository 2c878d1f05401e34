package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/store"
)

// ErrNoStore reports that a daemon is named without a store.
var ErrNoStore = errors.New("--daemon names a daemon in a team store: name that with --postgres")

func (v *Verify) inStore(ctx context.Context, checks journal.Checks) error {
	daemons, err := store.Daemons(ctx, v.Store, v.Daemon)
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

// mostUnread bounds messages: clients of a store can add any number of calls.
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
