package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/internal/journal/chain"
)

// fillAfter is how long a record may be missing in the index while no one queries it: what
// is known of a call by then is written at once.
const fillAfter = 250 * time.Millisecond

// One transaction of a fill takes so much.
const (
	fillRecords = 5000
	fillBytes   = 8 << 20
)

// fill writes the records up to a mark into the index, in transactions of its own.
func (x *index) fill(ctx context.Context, log *chain.Log, to chain.Mark) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.full < to.Number {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := x.tx(func() (err error) { x.full, err = x.fillSome(log, to); return err }); err != nil {
			return fmt.Errorf("cannot bring the index of the journal up to date: %w", err)
		}
	}
	if x.fast {
		return nil
	}
	if err := x.tx(x.search); err != nil {
		return fmt.Errorf("cannot complete the index of the journal: %w", err)
	}
	return nil
}

// fillSome is one transaction of fill. It returns the last record in the index.
func (x *index) fillSome(log *chain.Log, to chain.Mark) (uint64, error) {
	have, err := scanPosition(x.row(queryPosition))
	if err != nil || have.Number >= to.Number {
		return have.Number, err
	}
	f, err := x.filler()
	if err != nil {
		return have.Number, err
	}
	switch err := log.Read(have, to, f.add); {
	case err == nil:
		f.at = to // records of the log itself are not passed on
	case !errors.Is(err, errEnough):
		return have.Number, err
	}
	return f.at.Number, f.put()
}

var errEnough = errors.New("enough for one transaction")

// filler takes up records that follow the position of an index.
type filler struct {
	x     *index
	at    chain.Mark // of the last record
	table *table     // knows the calls of the records

	records, bytes int
	arguments      map[Key][]byte
	messages       []Message
	segments       []uint32       // of messages
	received       map[Key]uint32 // the segments of calls
	fences         bool
}

// filler begins to take up records. The caller is in a transaction.
func (x *index) filler() (*filler, error) {
	f := &filler{x: x, table: newTable(), arguments: map[Key][]byte{}, received: map[Key]uint32{}}
	f.table.load = func(k Key) (*Record, error) { return loaded(scanRecord(x.row(findKey, k))) }
	return f, f.begin()
}

// loaded is nil for a call that is not found.
func loaded(r Record, err error) (*Record, error) {
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return &r, err
}

// begin reads what a table needs beside calls.
func (f *filler) begin() error {
	t := f.table
	err := f.x.row(queryLast).Scan(&t.lastKey, &t.lastSeq, &t.begins)
	if err != nil {
		return err
	}
	rows, err := f.x.conn.QueryContext(context.Background(), queryFences)
	if err != nil {
		return err
	}
	return scanFences(rows, t)
}

func (f *filler) add(rec chain.Record) error {
	if f.records >= fillRecords || f.bytes >= fillBytes {
		return errEnough
	}
	e, err := decodeRecord(rec, f.x.texts)
	if err != nil {
		return err
	}
	if k := callOf(e); k != 0 {
		if _, err := f.table.recall(k); err != nil {
			return err
		}
	}
	f.at = rec.Mark
	f.records++
	f.bytes += len(rec.Body)
	for _, m := range f.table.apply(e, rec.Number, rec.Time) {
		f.messages, f.segments = append(f.messages, m), append(f.segments, rec.Segment)
		f.bytes += len(m.Body)
	}
	f.table.commit()
	switch e := e.(type) {
	case *callEvent:
		f.arguments[Key(e.key)], f.received[Key(e.key)] = e.call.Arguments, rec.Segment
	case *fenceEvent:
		f.fences = true
	case *removedEvent:
		f.fences = true
		return f.removed(e.stays)
	}
	return nil
}

// removed removes what was in the segments before one, as if the index were made of the rest.
func (f *filler) removed(stays int64) error {
	if err := f.put(); err != nil {
		return err
	}
	const calls = "calls WHERE id < coalesce((SELECT id FROM calls WHERE segment >= ?1 ORDER BY id LIMIT 1), 1 << 62)"
	for _, statement := range []string{
		"DELETE FROM messages WHERE seq < coalesce((SELECT seq FROM messages WHERE segment >= ?1 ORDER BY seq LIMIT 1), 1 << 62)",
		"DELETE FROM messages WHERE seq IN (SELECT return_seq FROM " + calls + ")",
		"DELETE FROM arguments WHERE call IN (SELECT id FROM " + calls + ")",
		"DELETE FROM " + calls,
	} {
		if _, err := f.x.exec(statement, stays); err != nil {
			return err
		}
	}
	return nil
}

// put writes what was taken up, and forgets it. The caller is in a transaction.
func (f *filler) put() error {
	var err error
	do := func(query string, args ...any) {
		if err == nil {
			_, err = f.x.exec(query, args...)
		}
	}
	query := putCall()
	for _, r := range f.table.calls {
		var segment any // stays when it is NULL
		if n, fresh := f.received[r.Key]; fresh {
			segment = n
		}
		do(query, append(callValues(r), segment)...)
	}
	for k, text := range f.arguments {
		do("INSERT INTO arguments (call, text) VALUES (?, ?)", k, string(text))
	}
	for i, m := range f.messages {
		do(putMessage, m.Seq, m.ID, m.Time.UnixNano(), m.Type, m.Direction, m.Client, m.AgentID, m.ConversationID,
			m.RunID, m.StepID, m.OTID, m.CallID, m.Status, string(m.Body), m.GroupID, m.SenderID, f.segments[i])
	}
	if f.fences {
		do("DELETE FROM fences")
		for client, ids := range f.table.fences {
			for _, id := range ids {
				do("INSERT INTO fences (client, tool_call_id) VALUES (?, ?)", client, id)
			}
		}
	}
	at := f.at
	do("INSERT OR REPLACE INTO position (id, number, segment, start, hash, last_key, last_seq, begins) VALUES (1, ?, ?, ?, ?, ?, ?, ?)",
		int64(at.Number), at.Segment, at.Offset, at.Hash[:], f.table.lastKey, f.table.lastSeq, f.table.begins)
	f.messages, f.segments, f.fences, f.records, f.bytes = nil, nil, false, 0, 0
	clear(f.arguments)
	clear(f.received)
	f.table.forget(at.Number)
	return err
}

const putMessage = `INSERT INTO messages (` + messageColumns + `, segment) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// callNames are the columns of calls, as callValues returns them.
const callNames = `id, client, tool_call_id, agent_id, conversation_id, run_id, step_id, otid, group_id, sender_id, workspace,
	request_message_id, dialect, tool_name, canonical_tool, args_hash, background_of, kept, state,
	decision_action, decision_by, decision_rule, decision_source, decision_reason, decision_person, decision_widened,
	daemon, process, spool_dir, status, error_type, exit_code, signal, sandbox,
	received_at, decided_at, intended_at, started_at, returned_at, delivered_at, return_seq, segment`

// putCall is the statement that writes a call. A NULL return keeps the old one.
func putCall() string {
	var marks, changed []string
	for _, name := range strings.Fields(strings.ReplaceAll(callNames, ",", "")) {
		marks = append(marks, "?")
		changed = append(changed, name+" = coalesce(excluded."+name+", "+name+")")
	}
	return "INSERT INTO calls (" + callNames + ") VALUES (" + strings.Join(marks, ", ") + ") ON CONFLICT (id) DO UPDATE SET " + strings.Join(changed, ", ")
}

func callValues(r *entry) []any {
	d := r.Decision
	var returnSeq any
	if r.returnSeq > 0 {
		returnSeq = r.returnSeq
	}
	return []any{
		r.Key, r.Client, r.ID, r.AgentID, r.ConversationID, r.RunID, r.StepID, r.OTID, r.GroupID, r.SenderID, r.Workspace,
		r.RequestID, r.Dialect, r.Tool, r.Canonical, r.ArgsHash, r.BackgroundOf, r.Kept, r.State,
		d.Action, d.By, d.Rule, d.Source, d.Reason, d.Person, d.Widened,
		r.Daemon.String(), r.Process, r.SpoolDir, r.Status, r.ErrorType, r.ExitCode, r.Signal, r.Sandbox,
		r.ReceivedAt.UnixNano(), column(r.DecidedAt), column(r.IntendedAt), column(r.StartedAt), column(r.ReturnedAt), column(r.DeliveredAt), returnSeq,
	}
}

// column is a time, NULL for what has not happened.
func column(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixNano()
}
