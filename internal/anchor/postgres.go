package anchor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/toold/toold/internal/journal/seal"
)

// Postgres is the table toold_anchors of a database, by its URL. Rows are only added, so its
// user needs no more than INSERT and SELECT once the table is there.
type Postgres string

const (
	anchorTable  = `CREATE TABLE IF NOT EXISTS toold_anchors (key text, number bigint, checkpoint text NOT NULL, added timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (key, number))`
	tableIsThere = `SELECT 1 FROM information_schema.tables WHERE table_name = 'toold_anchors'`
	addAnchor    = `INSERT INTO toold_anchors (key, number, checkpoint) VALUES ($1, $2, $3)`
	allAnchors   = `SELECT checkpoint FROM toold_anchors ORDER BY number`
)

const dialTime = 10 * time.Second

// with does something on a connection.
func (url Postgres) with(ctx context.Context, do func(*pgconn.PgConn) error) error {
	dialing, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	db, err := pgconn.Connect(dialing, string(url))
	if err != nil {
		return err // without the password
	}
	return errors.Join(do(db), db.Close(ctx))
}

// query runs a statement and returns the first column of its rows.
func query(ctx context.Context, db *pgconn.PgConn, sql string, args ...string) (column [][]byte, err error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	result := db.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	for _, row := range result.Rows {
		column = append(column, row[0])
	}
	return column, result.Err
}

// Add adds a row, and makes the table when it is missing.
func (url Postgres) Add(ctx context.Context, c seal.Checkpoint) error {
	text, err := line(c)
	if err != nil {
		return err
	}
	err = url.with(ctx, func(db *pgconn.PgConn) error {
		there, err := query(ctx, db, tableIsThere)
		if err == nil && len(there) == 0 {
			_, err = query(ctx, db, anchorTable)
		}
		if err == nil {
			_, err = query(ctx, db, addAnchor, seal.ID(c.Key), strconv.FormatUint(c.Number, 10), strings.TrimSpace(string(text)))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot anchor in PostgreSQL: %w", err)
	}
	return nil
}

// All reads the rows.
func (url Postgres) All(ctx context.Context) (list []seal.Checkpoint, err error) {
	err = url.with(ctx, func(db *pgconn.PgConn) error {
		rows, err := query(ctx, db, allAnchors)
		if err != nil {
			return err
		}
		var text strings.Builder
		for _, row := range rows {
			text.Write(append(row, '\n'))
		}
		list, err = lines(strings.NewReader(text.String()), func([]byte) bool { return false })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the anchors in PostgreSQL: %w", err)
	}
	return list, nil
}
