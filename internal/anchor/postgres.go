package anchor

import (
	"context"
	"fmt"
	"strings"

	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/postgres"
)

// Postgres is the URL of a database with the table toold_anchors. Once the table exists, the user
// needs only INSERT and SELECT.
type Postgres string

const (
	anchorTable = `CREATE TABLE IF NOT EXISTS toold_anchors (key text, number bigint, checkpoint text NOT NULL, added timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (key, number))`
	addAnchor   = `INSERT INTO toold_anchors (key, number, checkpoint) VALUES ($1, $2, $3)`
	allAnchors  = `SELECT checkpoint FROM toold_anchors ORDER BY number`
)

// Add inserts a row, and creates the table if it is missing.
func (url Postgres) Add(ctx context.Context, c seal.Checkpoint) error {
	if err := url.add(ctx, c); err != nil {
		return fmt.Errorf("cannot anchor in PostgreSQL: %w", err)
	}
	return nil
}

func (url Postgres) add(ctx context.Context, c seal.Checkpoint) error {
	text, err := line(c)
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, string(url))
	if err != nil {
		return err
	}
	defer db.Close()
	there, err := db.Has(ctx, "toold_anchors")
	if err == nil && !there {
		_, err = db.Query(ctx, anchorTable)
	}
	if err == nil {
		_, err = db.Query(ctx, addAnchor, seal.ID(c.Key), c.Number, strings.TrimSpace(string(text)))
	}
	return err
}

// All reads the rows.
func (url Postgres) All(ctx context.Context) ([]seal.Checkpoint, error) {
	list, err := url.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the anchors in PostgreSQL: %w", err)
	}
	return list, nil
}

func (url Postgres) all(ctx context.Context) ([]seal.Checkpoint, error) {
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
	return lines(strings.NewReader(text.String()), func([]byte) bool { return false })
}
