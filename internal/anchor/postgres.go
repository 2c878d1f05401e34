package anchor

import (
	"context"
	"strings"

	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/postgres"
)

// Postgres returns a Store that keeps checkpoints in the table toold_anchors of the database at a URL. Once the table
// exists, the user needs only INSERT and SELECT.
func Postgres(url string) Store { return store{database(url), "PostgreSQL"} }

type database string

const (
	anchorTable = `CREATE TABLE IF NOT EXISTS toold_anchors (key text, number bigint, checkpoint text NOT NULL, added timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (key, number))`
	addAnchor   = `INSERT INTO toold_anchors (key, number, checkpoint) VALUES ($1, $2, $3)`
	allAnchors  = `SELECT checkpoint FROM toold_anchors ORDER BY number`
)

func (url database) add(ctx context.Context, c seal.Checkpoint, line []byte) error {
	db, err := postgres.Open(ctx, string(url))
	if err != nil {
		return err
	}
	defer db.Close()
	exists, err := db.HasTable(ctx, "toold_anchors")
	if err == nil && !exists {
		_, err = db.Query(ctx, anchorTable)
	}
	if err == nil {
		_, err = db.Query(ctx, addAnchor, seal.ID(c.Key), c.Number, strings.TrimSpace(string(line)))
	}
	return err
}

func (url database) all(ctx context.Context) ([]seal.Checkpoint, error) {
	db, err := postgres.Open(ctx, string(url))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Query(ctx, allAnchors)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	for _, row := range rows {
		text.WriteString(row.Text(0) + "\n")
	}
	return parseLines(strings.NewReader(text.String()), func([]byte) bool { return false })
}
