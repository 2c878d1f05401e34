package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/postgres"
)

const (
	batchRecords = 1000    // in a transaction
	batchBytes   = 8 << 20 // in a transaction, without its last record

	batchTime = time.Minute // for a transaction
	drainTime = 2 * time.Second
	pollEvery = time.Minute // for records of other processes
	firstWait = time.Second // after a failure; doubles each time
	maxWait   = time.Minute
)

// Store copies a journal to a database. A nil Store does nothing.
type Store struct {
	address string
	journal *journal.Journal
	changed func(error)
	lag     atomic.Pointer[string]
}

// New returns a Store for a connection string. The caller must call Run. changed receives each new kind of failure,
// and nil after recovery. Parts of the journal that the store lacks are not removed.
func New(address string, j *journal.Journal, changed func(error)) (*Store, error) {
	if err := postgres.Check(address); err != nil {
		return nil, err
	}
	s := &Store{address: address, journal: j, changed: changed}
	text := "was not reached yet"
	s.lag.Store(&text)
	return s, nil
}

// Behind describes, without confidential details, why the store lacks records; "" if it lacks none.
func (s *Store) Behind() string {
	if s == nil {
		return ""
	}
	return *s.lag.Load()
}

// Run copies the journal until ctx ends, and then the rest for up to drainTime.
func (s *Store) Run(ctx context.Context) {
	if s == nil {
		return
	}
	for wait := firstWait; ctx.Err() == nil; wait = min(2*wait, maxWait) {
		err := s.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if s.Behind() == "" {
			wait = firstWait // it worked until now
		}
		s.report(err)
		select {
		case <-ctx.Done():
		case <-time.After(wait + rand.N(wait)): // so that the daemons of a team do not reconnect at once
		}
	}
}

func (s *Store) report(err error) {
	text := ""
	switch {
	case errors.Is(err, chain.ErrNoMark):
		text = "has another history of this journal"
	case err != nil:
		text = "cannot be written, and gets what it lacks later"
	}
	if before := s.lag.Swap(&text); *before != text {
		s.changed(err)
	}
}

func (s *Store) follow(ctx context.Context) error {
	db, err := connect(ctx, s.address)
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		if err := s.copyAll(ctx, db); err != nil {
			return err
		}
		s.report(nil)
		select {
		case <-ctx.Done():
			soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
			defer cancel()
			s.journal.WaitForLock(drainTime)
			s.journal.CheckpointRest()
			return s.copyAll(soon, db)
		case <-s.journal.Grown():
		case <-time.After(pollEvery):
		}
	}
}

func (s *Store) copyAll(ctx context.Context, db *postgres.DB) error {
	for {
		left, err := s.copyBatch(ctx, db)
		if err != nil || left == 0 {
			return err
		}
	}
}

func (s *Store) copyBatch(ctx context.Context, db *postgres.DB) (left uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	id, list, left, err := missingRecords(ctx, db, s.journal, batchRecords)
	if err == nil && len(list) > 0 {
		err = insert(ctx, db, id, list)
	}
	return left, err
}

// missingRecords returns up to limit records after the last one in the store, and how many are left.
func missingRecords(ctx context.Context, db *postgres.DB, j *journal.Journal, limit int) (id string, list []journal.Copied, left uint64, err error) {
	if id, err = j.ID(); err != nil {
		return "", nil, 0, err
	}
	rows, err := db.Query(ctx, lastRecord, id)
	if err != nil {
		return "", nil, 0, err
	}
	var at chain.Mark
	if len(rows) > 0 {
		at = mark(rows[0])
	}
	list, left, err = j.Copy(at, limit, batchBytes)
	if errors.Is(err, chain.ErrNoMark) {
		err = fmt.Errorf("the store has another history of this journal: it ends with record number %d there, and the journal has another one in that place, or none, or has removed what follows. Either was restored or changed, or two daemons have the same journal. "+
			"The store is left as it is. Compare `toold audit verify` with `toold audit verify --postgres URL`; to begin anew there, connect as another user of the database (%w)", at.Number, err)
	}
	if err == nil {
		j.Hold(max(1, at.Segment))
	}
	return id, list, left, err
}

// Columns of toold_records derived from the record, without the id of the journal.
const columns = `segment, start, number, kind, time, call, client, agent, conversation, run, tool_call, workspace, tool, type, status, decision, decided_by`

const (
	addRecord = `INSERT INTO toold_records (daemon, record, ` + columns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`
	addText   = `INSERT INTO toold_texts (daemon, segment, hash, text) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
)

func insert(ctx context.Context, db *postgres.DB, id string, list []journal.Copied) error {
	var all []postgres.Statement
	for _, r := range list {
		for hash, text := range r.Beside {
			all = append(all, postgres.Statement{SQL: addText, Args: []any{id, r.Segment, hash[:], text}})
		}
		args := []any{id, r.Text}
		for _, value := range values(r) {
			args = append(args, value)
		}
		all = append(all, postgres.Statement{SQL: addRecord, Args: args})
	}
	return db.Exec(ctx, all...)
}

func values(r journal.Copied) []string {
	list := strings.Fields(fmt.Sprintln(r.Segment, r.Offset, r.Number, r.Kind, r.Time.UnixNano(), int64(r.Call)))
	for _, text := range []string{r.Client, r.Agent, r.Conversation, r.Run, r.ToolCall, r.Workspace, r.Tool, r.Type, r.Status, r.Action, r.By} {
		list = append(list, column(text))
	}
	return list
}

// columnBytes limits a text in a column: clients choose them, and an index rejects long ones.
const columnBytes = 256

func column(text string) string {
	text = strings.ReplaceAll(text[:min(len(text), columnBytes)], "\x00", "")
	return strings.ToValidUTF8(text, "")
}
