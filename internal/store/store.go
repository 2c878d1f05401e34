// Package store copies a journal to a PostgreSQL database, which several daemons may share, and
// reads it there.
//
// It copies whole records, so that the database alone suffices to verify chain and signatures. Rows
// are only added, in order; a database with another history of the journal is left as it is. Nothing
// is copied back.
//
// A row belongs to the database user who added it: journals of the same id of two users are two.
// What is read is verified, because users of the database may write anything.
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

// eachDaemon returns the last record of each daemon. It skips in the index from one daemon to the next.
const eachDaemon = `WITH RECURSIVE d AS (
	(SELECT number, segment, start, hash, time, owner, daemon FROM toold_records ORDER BY owner DESC, daemon DESC, number DESC LIMIT 1)
	UNION ALL
	SELECT n.* FROM d, LATERAL (
		SELECT r.number, r.segment, r.start, r.hash, r.time, r.owner, r.daemon FROM toold_records r
		WHERE (r.owner, r.daemon) < (d.owner, d.daemon) ORDER BY r.owner DESC, r.daemon DESC, r.number DESC LIMIT 1) n)
SELECT * FROM d ORDER BY owner, daemon`

// open opens a database and checks its encoding: with another one it would reject some texts, and so all that follow.
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

func connect(ctx context.Context, address string) (*postgres.DB, error) {
	db, err := open(ctx, address)
	if err != nil {
		return nil, err
	}
	checkCtx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	exists, err := db.HasTable(checkCtx, table)
	if err == nil && !exists {
		err = errors.New("it has no tables of toold that this user may use: have its administrator run `toold audit store URL`, and grant them (docs/operations.md)")
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func withDB(ctx context.Context, address string, do func(*postgres.DB) error) error {
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

// Prepare creates the tables if they are missing.
func Prepare(ctx context.Context, address string) error {
	db, err := open(ctx, address)
	if err == nil {
		defer db.Close()
		var exists bool
		if exists, err = db.HasTable(ctx, table); err == nil && !exists {
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

// Name returns OWNER/ID.
func (d Daemon) Name() string { return d.Owner + "/" + d.ID }

// prefix returns the prefix of the names (OWNER/ID) that name selects: an OWNER, or OWNER/ and the first
// digits of an ID.
func prefix(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return name + "/"
}

// Daemons lists the daemons that name selects (see prefix); "" = all.
func Daemons(ctx context.Context, address, name string) (list []Daemon, err error) {
	err = withDB(ctx, address, func(db *postgres.DB) error {
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

// mark decodes number, segment, start and hash, the first columns of a row.
func mark(r postgres.Row) chain.Mark {
	m := chain.Mark{Number: uint64(r.Int(0)), Segment: uint32(r.Int(1)), Offset: r.Int(2)}
	copy(m.Hash[:], r.Bytes(3))
	return m
}

// Check compares a store with a journal, or with nil only reads it, and returns how many records
// the store lacks.
func Check(ctx context.Context, address string, j *journal.Journal) (lacks uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	err = withDB(ctx, address, func(db *postgres.DB) (err error) {
		if j != nil {
			_, _, lacks, err = missingRecords(ctx, db, j, 0)
		}
		return err
	})
	return lacks, err
}
