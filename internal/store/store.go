// Package store copies a journal to a PostgreSQL database, which several daemons may share,
// and reads it there.
//
// What is there are the very records, so the chain of a journal and its signatures are
// verified from the database alone. Rows are only added, in the order of the journal, behind
// the last one that is there; a database that has another history of a journal is left as it
// is. The journal stays the truth: nothing is ever read from here into it.
//
// Each row belongs to the database user that has added it; journals of the same name of two
// users are two. What is read is checked, since users of the database may have written
// whatever they may.
package store

import (
	"context"
	_ "embed" // the schema
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/postgres"
)

//go:embed schema.sql
var schema string

const (
	table      = "toold_records"
	lastRecord = `SELECT number, segment, start, hash FROM toold_records WHERE owner = session_user AND daemon = $1 ORDER BY number DESC LIMIT 1`
)

// eachDaemon has the last record of each, from one to the next in the index.
const eachDaemon = `WITH RECURSIVE d AS (
	(SELECT number, segment, start, hash, time, owner, daemon FROM toold_records ORDER BY owner DESC, daemon DESC, number DESC LIMIT 1)
	UNION ALL
	SELECT n.* FROM d, LATERAL (
		SELECT r.number, r.segment, r.start, r.hash, r.time, r.owner, r.daemon FROM toold_records r
		WHERE (r.owner, r.daemon) < (d.owner, d.daemon) ORDER BY r.owner DESC, r.daemon DESC, r.number DESC LIMIT 1) n)
SELECT * FROM d ORDER BY owner, daemon`

// open opens a database that takes all texts: one of another encoding refuses some, and so all
// that comes behind them.
func open(ctx context.Context, address string) (*postgres.DB, error) {
	db, err := postgres.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	if is := db.Encoding(); is != "UTF8" {
		db.Close()
		return nil, fmt.Errorf("the database has the encoding %.20q, and the record needs UTF8: make another one, with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0", is)
	}
	return db, nil
}

// connect opens a database that has the tables.
func connect(ctx context.Context, address string) (*postgres.DB, error) {
	db, err := open(ctx, address)
	if err != nil {
		return nil, err
	}
	looking, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	there, err := db.Has(looking, table)
	if err == nil && !there {
		err = errors.New("it has no tables of toold that this user may use: have its administrator run `toold audit store URL`, and grant them (docs/operations.md)")
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// with does something with a database that has the tables.
func with(ctx context.Context, address string, do func(*postgres.DB) error) error {
	db, err := connect(ctx, address)
	if err == nil {
		defer db.Close()
		err = do(db)
	}
	if err == nil || errors.Is(err, journal.ErrTampered) {
		return err
	}
	return fmt.Errorf("cannot read the team store: %w", err)
}

// Prepare makes the tables, unless they are there.
func Prepare(ctx context.Context, address string) error {
	db, err := open(ctx, address)
	if err == nil {
		defer db.Close()
		var there bool
		if there, err = db.Has(ctx, table); err == nil && !there {
			err = db.Script(ctx, schema)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot make the tables of the team store: %w", err)
	}
	return nil
}

// Daemon is the journal of a daemon in a store.
type Daemon struct {
	Owner string // the database user
	ID    string // of the journal
	Last  chain.Mark
	Time  time.Time // of the last record
}

// Name is what people call it: OWNER/ID.
func (d Daemon) Name() string { return d.Owner + "/" + d.ID }

// prefix is what the names begin with that a person means by OWNER, or OWNER/ and the first
// digits of an id.
func prefix(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return name + "/"
}

// Daemons lists those that a person means by a name; "" = all.
func Daemons(ctx context.Context, address, name string) (list []Daemon, err error) {
	err = with(ctx, address, func(db *postgres.DB) error {
		rows, err := db.Query(ctx, eachDaemon)
		for _, r := range rows {
			d := Daemon{Owner: r.Text(5), ID: r.Text(6), Last: mark(r), Time: time.Unix(0, r.Int(4)).UTC()}
			if strings.HasPrefix(d.Name(), prefix(name)) {
				list = append(list, d)
			}
		}
		return err
	})
	return list, err
}

// mark is a record by its number, segment, start and hash, the first columns of a row.
func mark(r postgres.Row) chain.Mark {
	m := chain.Mark{Number: uint64(r.Int(0)), Segment: uint32(r.Int(1)), Offset: r.Int(2)}
	copy(m.Hash[:], r.Bytes(3))
	return m
}

// Check compares a store with a journal; nil = only the store is looked at. It returns how
// many records the store lacks.
func Check(ctx context.Context, address string, j *journal.Journal) (lacks uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	err = with(ctx, address, func(db *postgres.DB) (err error) {
		if j != nil {
			_, _, lacks, err = next(ctx, db, j, 0)
		}
		return err
	})
	return lacks, err
}
