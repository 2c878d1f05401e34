package store

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/postgres"
)

const (
	partsOf = `SELECT DISTINCT segment FROM toold_records WHERE owner = $1 AND daemon = $2 ORDER BY segment`
	oneText = `SELECT text FROM toold_texts WHERE owner = $1 AND daemon = $2 AND segment = $3 AND hash = $4`
	onePart = `SELECT record, %s::text FROM toold_records r WHERE owner = $1 AND daemon = $2 AND segment = $3 AND number <= $4 ORDER BY r.number` // the column is no text
)

// reader reads the journal of a daemon. It is not safe for concurrent use.
type reader struct {
	Daemon
	query    func(sql string, args ...any) ([]postgres.Row, error)
	segment  uint32 // of text
	text     []byte
	mismatch string // first row that differs from its record
}

func newReader(ctx context.Context, db *postgres.DB, d Daemon) *reader {
	return &reader{Daemon: d, query: func(sql string, args ...any) ([]postgres.Row, error) {
		return db.Query(ctx, sql, append([]any{d.Owner, d.ID}, args...)...)
	}}
}

// read implements Read of chain.Copy. A segment has about 64 MiB.
func (s *reader) read(segment uint32, hash *chain.Hash) ([]byte, error) {
	if hash != nil {
		rows, err := s.query(oneText, segment, hash[:])
		if err == nil && len(rows) == 0 {
			err = fs.ErrNotExist
		}
		if err != nil {
			return nil, err
		}
		return rows[0].Bytes(0), nil
	}
	if s.segment == segment {
		return s.text, nil
	}
	rows, err := s.query(fmt.Sprintf(onePart, strings.ReplaceAll(columns, ",", "::text,")), segment, s.Last.Number)
	if err != nil {
		return nil, err
	}
	s.segment, s.text = segment, nil
	for _, row := range rows {
		s.compare(row, segment)
		s.text = append(s.text, row.Bytes(0)...)
	}
	return s.text, nil
}

// compare compares a row with its record. The chain detects invalid records.
func (s *reader) compare(row postgres.Row, segment uint32) {
	r, err := chain.Parse(segment, int64(len(s.text)), row.Bytes(0))
	says, damaged := journal.SaysOf(r)
	if err != nil || damaged != nil || s.mismatch != "" {
		return
	}
	for i, want := range values(says) {
		if is := row.Text(1 + i); is != want {
			s.mismatch = fmt.Sprintf("the row of record number %d says other than the record: %q instead of %q", r.Number, is, want)
			return
		}
	}
}

// Verify is journal.Verify for a journal in a store. It also compares rows with their records. The error is
// journal.ErrTampered.
func Verify(ctx context.Context, address string, d Daemon, checks seal.Checks) (r journal.Report, err error) {
	err = withDB(ctx, address, func(db *postgres.DB) error {
		s := newReader(ctx, db, d)
		parts, err := s.query(partsOf)
		if err != nil {
			return err
		}
		log := chain.Copy{Read: s.read}
		for _, part := range parts {
			log.Segments = append(log.Segments, uint32(part.Int(0)))
		}
		r, err = journal.VerifyCopy(ctx, log, d.Last, checks)
		if err == nil && s.mismatch != "" {
			err = fmt.Errorf("%w: %s", journal.ErrTampered, s.mismatch)
		}
		return err
	})
	return r, err
}
