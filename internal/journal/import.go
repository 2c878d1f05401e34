package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/legacy"
	"github.com/toold/toold/internal/statedir"
)

// Import converts the SQLite journal of 0.1.0-dev in dir, if it exists, and renames it to journal.db.imported. It
// returns the number of calls. The error is ErrTampered if the journal was changed, unless accept is set. A crash
// leaves either the old journal or the new one.
func Import(ctx context.Context, dir string, accept bool) (calls int, done bool, err error) {
	if !exists(oldPath(dir)) && !exists(oldPath(dir)+importing) {
		return 0, false, nil // without a lock: dir may be read-only
	}
	err = statedir.Alone(ctx, dir, "import", func() (err error) {
		if err = resumeImport(dir); err != nil {
			return err
		}
		if _, err := os.Stat(oldPath(dir)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if _, err := os.Stat(logDir(dir)); err == nil {
			return fmt.Errorf("both %s and %s are there: move away the one that is not to be used", oldPath(dir), logDir(dir))
		}
		done = true
		calls, err = importOld(ctx, dir, accept)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("cannot import journal.db: %w", err)
	}
	return calls, done, nil
}

func oldPath(dir string) string { return filepath.Join(dir, "journal.db") }

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

const (
	importing = ".importing" // suffix while the new journal replaces it
	imported  = ".imported"
)

func resumeImport(dir string) error {
	old := oldPath(dir)
	_, err := os.Stat(old + importing)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(logDir(dir)); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(old+importing, old)
	}
	return os.Rename(old+importing, old+imported)
}

func importOld(ctx context.Context, dir string, accept bool) (calls int, err error) {
	old, fresh := oldPath(dir), logDir(dir)+".new"
	if err := os.RemoveAll(fresh); err != nil {
		return 0, err
	}
	if calls, err = copyOld(ctx, dir, fresh, accept); err != nil {
		return 0, err
	}
	f := files{path: fresh, segment: segmentBytes}
	if f.log, err = chain.Directory(fresh); err == nil {
		f.notes, err = openNotes(dir)
	}
	if err == nil {
		_, _, err = chain.Accept(f.options(nil))
	}
	if err = errors.Join(err, f.close()); err != nil {
		return 0, err
	}
	for _, step := range [][2]string{{old, old + importing}, {fresh, logDir(dir)}, {old + importing, old + imported}} {
		if err := os.Rename(step[0], step[1]); err != nil {
			return 0, err
		}
	}
	parent, err := chain.Directory(dir)
	if err != nil {
		return 0, err
	}
	err = parent.Sync()
	if gone := os.Remove(filepath.Join(dir, "head")); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return calls, errors.Join(err, parent.Close())
}

func copyOld(ctx context.Context, dir, fresh string, accept bool) (calls int, err error) {
	db, err := legacy.Open(ctx, oldPath(dir))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.Verify(ctx, dir)
	if errors.Is(err, legacy.ErrTampered) && accept {
		err = nil
	}
	if errors.Is(err, legacy.ErrTampered) {
		return 0, fmt.Errorf("%w: %w. To import it as it is, run `toold journal import --accept`", ErrTampered, err)
	}
	if err != nil {
		return 0, err
	}
	to, err := chain.Directory(fresh)
	if err != nil {
		return 0, err
	}
	defer to.Close()
	f := files{log: to, notes: to, segment: segmentBytes}
	log, err := chain.Open(f.options(func(chain.Record) error { return nil }))
	if err != nil {
		return 0, err
	}
	m := importer{db: db, log: log, known: map[identity]*oldCall{}}
	err = m.all(ctx)
	if err == nil {
		err = db.Complete(ctx)
	}
	return m.calls, errors.Join(err, log.Close())
}

type importer struct {
	db    *legacy.Journal
	log   *chain.Log
	known map[identity]*oldCall
	calls int

	waiting []datedEvent
	bytes   int
}

type oldCall struct {
	rec      Record
	returned int64 // number of its return; 0 once copied
}

type datedEvent struct {
	kind byte
	at   time.Time
	event
}

func (m *importer) all(ctx context.Context) error {
	err := m.db.Messages(ctx, func(row legacy.Row) error {
		msg, err := oldMessage(row)
		if err == nil {
			err = m.message(ctx, msg)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := m.earlyCancels(ctx); err != nil {
		return err
	}
	return m.flush()
}

// Limits of one batch.
const (
	importRecords = 5000
	importBytes   = 8 << 20
)

func (m *importer) message(ctx context.Context, msg Message) error {
	id := identity{msg.Client, msg.AgentID, msg.CallID}
	c := m.known[id]
	switch {
	case c == nil && msg.CallID != "" && msg.Direction == In:
		if err := m.request(ctx, id, msg); err != nil {
			return err
		}
	case c != nil && msg.Seq == c.returned:
		m.answer(c, msg)
	default:
		m.add(kindMessage, msg.Time, &messageEvent{msg})
	}
	if m.bytes += len(msg.Body); len(m.waiting) < importRecords && m.bytes < importBytes {
		return nil
	}
	return m.flush()
}

func (m *importer) request(ctx context.Context, id identity, msg Message) error {
	c, arguments, err := oldRecord(m.db.Call(ctx, id.client, id.agent, id.id))
	if errors.Is(err, sql.ErrNoRows) {
		m.add(kindMessage, msg.Time, &messageEvent{msg})
		return nil
	}
	if err != nil {
		return fmt.Errorf("call %q: %w", id.id, err)
	}
	r := &c.rec
	m.known[id] = c
	m.calls++
	e := &callEvent{key: int64(r.Key), daemon: r.Daemon, state: string(Received), call: r.Call, request: sent{msg.Seq, msg.ID, msg.Body}}
	e.call.Arguments, e.call.MessageType, e.call.OTID = arguments, msg.Type, msg.OTID
	m.add(kindCall, r.ReceivedAt, e)
	if !r.DecidedAt.IsZero() {
		state := Decided
		switch {
		case !r.IntendedAt.IsZero():
			state = Running
		case r.State == Waiting:
			state = Waiting
		}
		m.add(kindDecision, r.DecidedAt, &decisionEvent{int64(r.Key), string(state), r.Decision})
	}
	if !r.StartedAt.IsZero() {
		m.add(kindStarted, r.StartedAt, &startedEvent{int64(r.Key), r.StartedAt, r.Process, r.SpoolDir})
	}
	return nil
}

func oldRecord(row legacy.Row) (*oldCall, []byte, error) {
	var c oldCall
	var arguments []byte
	var received int64
	var exit, decided, intended, started, returned, delivered sql.NullInt64
	r, d := &c.rec, &c.rec.Decision
	err := row.Scan(&r.Key, &r.Client, &r.ID, &r.AgentID, &r.ConversationID, &r.RunID, &r.StepID, &r.OTID, &r.GroupID, &r.SenderID, &r.Workspace,
		&r.Origin.ID, &r.Dialect, &r.Tool, &r.Canonical, &r.ArgsHash, &r.BackgroundOf, &r.State,
		&d.Action, &d.By, &d.Rule, &d.Source, &d.Reason, &d.Person, &d.Widened,
		&r.Daemon, &r.Process, &r.SpoolDir, &r.Status, &r.ErrorType, &exit, &r.Signal, &r.Sandbox,
		&received, &decided, &intended, &started, &returned, &delivered, &c.returned, &arguments)
	if err != nil {
		return nil, nil, err
	}
	if exit.Valid {
		code := int(exit.Int64)
		r.ExitCode = &code
	}
	r.ReceivedAt = time.Unix(0, received).UTC()
	r.DecidedAt, r.IntendedAt, r.StartedAt = instant(decided), instant(intended), instant(started)
	r.ReturnedAt, r.DeliveredAt = instant(returned), instant(delivered)
	return &c, arguments, nil
}

func instant(ns sql.NullInt64) time.Time {
	if !ns.Valid {
		return time.Time{}
	}
	return time.Unix(0, ns.Int64).UTC()
}

func oldMessage(row legacy.Row) (m Message, err error) {
	var at int64
	err = row.Scan(
		&m.Seq, &m.ID, &at, &m.Type, &m.Direction, &m.Client, &m.AgentID, &m.ConversationID,
		&m.RunID, &m.StepID, &m.OTID, &m.CallID, &m.Status, &m.Body, &m.GroupID, &m.SenderID,
	)
	m.Time = time.Unix(0, at).UTC()
	return m, err
}

func (m *importer) answer(c *oldCall, msg Message) {
	r := c.rec
	m.add(kindReturn, msg.Time, &returnEvent{key: int64(r.Key), sent: sent{msg.Seq, msg.ID, msg.Body}, outcome: Outcome{
		Status: r.Status, ErrorType: r.ErrorType, ExitCode: r.ExitCode, Signal: r.Signal, Sandbox: r.Sandbox, OTID: msg.OTID,
	}})
	if !r.DeliveredAt.IsZero() {
		m.add(kindDelivered, r.DeliveredAt, &deliveredEvent{int64(r.Key), r.DeliveredAt})
	}
	*c = oldCall{}
}

func (m *importer) earlyCancels(ctx context.Context) error {
	return m.db.EarlyCancels(ctx, func(row legacy.Row) error {
		var client, id string
		err := row.Scan(&client, &id)
		m.add(kindEarlyCancel, time.Now(), &earlyCancelEvent{client, id, math.MaxInt32})
		return err
	})
}

func (m *importer) add(kind byte, at time.Time, e event) {
	redacted(e, nil)
	m.waiting = append(m.waiting, datedEvent{kind, at, e})
}

func (m *importer) flush() error {
	err := m.log.Update(func(b *chain.Batch) error {
		for _, e := range m.waiting {
			b.SetTime(e.at)
			body, err := encode(e.event, b)
			if err == nil {
				_, err = b.Append(e.kind, body)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	m.waiting, m.bytes = nil, 0
	return err
}
