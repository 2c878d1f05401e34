package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/statedir"
)

// callColumns are what scanRecord reads, from callTables.
const (
	callColumns = `c.id, c.client, c.tool_call_id, c.agent_id, c.conversation_id, c.run_id, c.step_id, c.otid, c.group_id, c.sender_id, c.workspace,
	c.request_message_id, c.dialect, c.tool_name, c.canonical_tool, c.args_hash, c.background_of, c.kept, c.state,
	c.decision_action, c.decision_by, c.decision_rule, c.decision_source, c.decision_reason, c.decision_person, c.decision_widened,
	c.daemon, c.process, c.spool_dir, c.status, c.error_type, c.exit_code, c.signal, c.sandbox, m.body,
	c.received_at, c.decided_at, c.intended_at, c.started_at, c.returned_at, c.delivered_at`
	callTables = ` FROM calls c LEFT JOIN messages m ON m.seq = c.return_seq `

	findKey    = "SELECT " + callColumns + callTables + "WHERE c.id = ?"
	findCall   = "SELECT " + callColumns + callTables + "WHERE c.client = ? AND c.agent_id = ? AND c.tool_call_id = ? ORDER BY c.id DESC LIMIT 1"
	findNamed  = "SELECT " + callColumns + callTables + "WHERE c.client = ? AND c.tool_call_id = ? ORDER BY c.id DESC LIMIT 1"
	findLatest = "SELECT " + callColumns + callTables + "WHERE c.tool_call_id = ? ORDER BY c.id DESC LIMIT 1"
	listCalls  = "SELECT " + callColumns + callTables + "WHERE c.id > ? ORDER BY c.id LIMIT ?"
	listUntold = "SELECT " + callColumns + callTables + "WHERE c.client = ? AND c.background_of <> '' AND c.state = 'returned' ORDER BY c.id LIMIT ?"
	listLatest = "SELECT " + callColumns + callTables + "WHERE c.id < ? ORDER BY c.id DESC LIMIT ?"
	listRan    = "SELECT " + callColumns + callTables + "WHERE c.return_seq IS NOT NULL AND c.client = ? AND c.agent_id = ? AND c.conversation_id = ? AND c.spool_dir <> '' ORDER BY c.id DESC LIMIT ?"
	listOpen   = "SELECT " + callColumns + callTables + "WHERE c.return_seq IS NULL ORDER BY c.id"
	listEnded  = "SELECT " + callColumns + callTables + "WHERE c.return_seq IS NOT NULL ORDER BY c.id DESC LIMIT ?"
	listEndOf  = "SELECT " + callColumns + callTables + "WHERE c.return_seq IS NOT NULL AND c.client = ? ORDER BY c.id DESC LIMIT ?"
)

// Find returns a client's call, of several the latest. The error is ErrNotFound if there is none.
func (j *Journal) Find(ctx context.Context, client, callID string) (Record, error) {
	return j.latest(ctx, func(r *Record) bool { return r.Client == client && r.ID == callID }, findNamed, client, callID)
}

// FindAs returns the call of one agent of a client, of several the latest. The error is ErrNotFound if there is
// none.
func (j *Journal) FindAs(ctx context.Context, client, agent, callID string) (Record, error) {
	return j.latest(ctx, func(r *Record) bool {
		return r.Client == client && r.AgentID == agent && r.ID == callID
	}, findCall, client, agent, callID)
}

// FindAny returns the latest call with this id, whoever made it. The error is
// ErrNotFound if there is none.
func (j *Journal) FindAny(ctx context.Context, callID string) (Record, error) {
	return j.latest(ctx, func(r *Record) bool { return r.ID == callID }, findLatest, callID)
}

// latest looks for a call in the table and, by a query, in the index, which need not be at
// the end of the log: what it has not is in the table.
func (j *Journal) latest(ctx context.Context, fits func(*Record) bool, query string, args ...any) (Record, error) {
	_ = j.write.look() // what was read before has to do
	var recent Record
	j.write.known.RLock()
	if r := j.write.table.latest(fits); r != nil {
		recent = *r
	}
	j.write.known.RUnlock()
	r, err := scanRecord(j.index.read.QueryRowContext(ctx, query, args...))
	if recent.Key != 0 && (err != nil || recent.Key >= r.Key) {
		return recent, nil
	}
	return r, err
}

// Arguments returns a call's arguments, byte for byte as they came. The error is
// ErrNotFound if there is no such call.
func (j *Journal) Arguments(ctx context.Context, k Key) (text []byte, err error) {
	if err := j.settle(ctx); err != nil {
		return nil, err
	}
	err = j.index.read.QueryRowContext(ctx, "SELECT text FROM arguments WHERE call = ?", k).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	return text, err
}

// Calls returns at most limit calls recorded after the one with key after, in
// their order; the zero Key starts at the first.
func (j *Journal) Calls(ctx context.Context, after Key, limit int) ([]Record, error) {
	return j.records(ctx, listCalls, after, limit)
}

// Latest returns at most limit calls recorded before the one with key before, the
// latest first; the zero Key starts at the last.
func (j *Journal) Latest(ctx context.Context, before Key, limit int) ([]Record, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return j.records(ctx, listLatest, before, limit)
}

// Ended returns at most limit calls that have their return, the latest first. An
// empty client means anybody's.
func (j *Journal) Ended(ctx context.Context, client string, limit int) ([]Record, error) {
	if client == "" {
		return j.records(ctx, listEnded, limit)
	}
	return j.records(ctx, listEndOf, client, limit)
}

// Ran returns at most limit calls of one conversation that have their return and may have
// printed something, the latest first.
func (j *Journal) Ran(ctx context.Context, client, agent, conversation string, limit int) ([]Record, error) {
	return j.records(ctx, listRan, client, agent, conversation, limit)
}

// Untold returns at most limit background calls of a client that have their return,
// which no connection has been told, the oldest first.
func (j *Journal) Untold(ctx context.Context, client string, limit int) ([]Record, error) {
	return j.records(ctx, listUntold, client, limit)
}

// OpenCalls returns the calls that have no return, of whichever daemon. The error is ErrBusy
// when another process writes for long.
func (j *Journal) OpenCalls() (map[Key]bool, error) {
	err := j.write.look()
	if errors.Is(err, chain.ErrBusy) {
		err = ErrBusy
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal's open calls: %w", err)
	}
	open := map[Key]bool{}
	j.write.known.RLock()
	defer j.write.known.RUnlock()
	for k, r := range j.write.table.calls {
		if r.ReturnedAt.IsZero() {
			open[k] = true
		}
	}
	return open, nil
}

func (j *Journal) records(ctx context.Context, query string, args ...any) ([]Record, error) {
	err := j.settle(ctx)
	var rows *sql.Rows
	if err == nil {
		rows, err = j.index.read.QueryContext(ctx, query, args...)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the journal's calls: %w", err)
	}
	return scanRecords(rows)
}

// Unfinished returns the calls without a return whose daemon is dead and that the caller wants
// (nil: all), the oldest first, and makes them this daemon's, so that no other gets them too. One
// that is Running may have run and must not run again; one that was Intended when the machine
// crashed becomes that. Those of a damaged journal wait until it is accepted.
func (j *Journal) Unfinished(wanted func(*Record) bool) ([]Record, error) {
	var list []Record
	if j.write.tampered != nil {
		return nil, nil
	}
	err := j.recordAnyway(synced, func(b *batch) (err error) {
		if list, err = j.abandoned(b.table, wanted); err != nil {
			return err
		}
		for i, r := range list {
			if err := b.append(kindAdopted, &adoptedEvent{int64(r.Key), j.daemon.String()}); err != nil {
				return err
			}
			list[i] = b.table.calls[r.Key].Record
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot find the calls of dead daemons: %w", err)
	}
	return list, nil
}

// abandoned returns the open calls of daemons that are dead. The caller has the lock of the table.
func (j *Journal) abandoned(t *table, wanted func(*Record) bool) (list []Record, err error) {
	alive := map[Identity]bool{j.daemon: true}
	for _, r := range t.calls {
		if !r.ReturnedAt.IsZero() || wanted != nil && !wanted(&r.Record) {
			continue
		}
		lives, looked := alive[r.Daemon]
		if !looked {
			if lives, err = statedir.Held(j.dir, r.Daemon.String()); err != nil {
				return nil, err
			}
			alive[r.Daemon] = lives
		}
		if !lives {
			list = append(list, r.Record)
		}
	}
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(a.Key, b.Key) })
	return list, nil
}

// scanRecords reads all rows of callColumns, and closes them.
func scanRecords(rows *sql.Rows) (list []Record, err error) {
	defer rows.Close()
	for rows.Next() {
		r, err := scanRecord(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

func scanRecord(row scanner) (Record, error) {
	var r Record
	var daemon string
	var received int64
	var exit, decided, intended, started, returned, delivered sql.NullInt64
	d := &r.Decision
	err := row.Scan(&r.Key, &r.Client, &r.ID, &r.AgentID, &r.ConversationID, &r.RunID, &r.StepID, &r.OTID, &r.GroupID, &r.SenderID, &r.Workspace,
		&r.RequestID, &r.Dialect, &r.Tool, &r.Canonical, &r.ArgsHash, &r.BackgroundOf, &r.Kept, &r.State,
		&d.Action, &d.By, &d.Rule, &d.Source, &d.Reason, &d.Person, &d.Widened,
		&daemon, &r.Process, &r.SpoolDir, &r.Status, &r.ErrorType, &exit, &r.Signal, &r.Sandbox, &r.Result,
		&received, &decided, &intended, &started, &returned, &delivered)
	if errors.Is(err, sql.ErrNoRows) {
		return Record{}, ErrNotFound
	}
	if err != nil {
		return Record{}, fmt.Errorf("cannot read a call: %w", err)
	}
	r.Daemon = parseIdentity(daemon)
	if exit.Valid {
		code := int(exit.Int64)
		r.ExitCode = &code
	}
	r.ReceivedAt = time.Unix(0, received).UTC()
	r.DecidedAt, r.IntendedAt, r.StartedAt = instant(decided), instant(intended), instant(started)
	r.ReturnedAt, r.DeliveredAt = instant(returned), instant(delivered)
	return r, nil
}

// instant is a stored time, or the zero time for NULL.
func instant(ns sql.NullInt64) time.Time {
	if !ns.Valid {
		return time.Time{}
	}
	return time.Unix(0, ns.Int64).UTC()
}
