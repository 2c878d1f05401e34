package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Receive records a call and its message. A call that is recorded already is
// returned as it stands, and fresh is false: nothing is changed. That needs no write: it
// works for as long as the journal can be read.
//
// An error says that the call was not recorded before and is not now, unless it is
// ErrUnknown. With fresh the call is recorded, but may not be on the disk. Either way
// it must not run.
func (j *Journal) Receive(ctx context.Context, c Call) (rec Record, fresh bool, err error) {
	return j.receive(ctx, soon, c, Received, Decision{}, nil)
}

// Begin is Receive and Intend in one: the call, the decision and the intent are
// on the disk when Begin returns with fresh.
func (j *Journal) Begin(ctx context.Context, c Call, d Decision) (rec Record, fresh bool, err error) {
	return j.receive(ctx, synced, c, Running, d, nil)
}

// Answer is Receive and Finish in one, for a call that was refused before it was
// recorded. With ran it was not: it has run, which only a call may that changes
// nothing. build is told only for a fresh call.
func (j *Journal) Answer(ctx context.Context, c Call, ran bool, o Outcome, build Builder) (rec Record, fresh bool, err error) {
	state := Received
	if ran {
		state = Running
	}
	return j.receive(ctx, synced, c, state, o.Decision, &answer{o, build})
}

// answer is the return of a call that is recorded with it.
type answer struct {
	Outcome
	build Builder
}

// receive records a call that is in some state already, with its answer if it has
// one.
func (j *Journal) receive(ctx context.Context, dur durability, c Call, s State, d Decision, a *answer) (rec Record, fresh bool, err error) {
	err = j.write.tx(dur, func() error {
		now := time.Now()
		r, err := j.write.newRow(ctx, c, s, d, a, now)
		if err != nil {
			return err
		}
		key, inserted, err := j.insertCall(ctx, r, now)
		if err != nil {
			return err
		}
		if fresh = inserted; !fresh {
			rec, err = scanRecord(j.write.row(ctx, findCall, c.Client, c.AgentID, c.ID))
			return err
		}
		if _, err = j.write.append(ctx, c.message(now), nil); err != nil {
			return err
		}
		rec = Record{Key: key, Call: c, State: s, Decision: d, Daemon: j.daemon, ReceivedAt: now}
		rec.MessageType, rec.Message, rec.Arguments = "", nil, nil
		if a != nil {
			_, err = j.write.append(ctx, c.returned(a.Outcome), a.build)
		}
		return err
	})
	var unsynced *unsyncedError
	switch {
	case err == nil || errors.As(err, &unsynced) && !fresh:
		return rec, fresh, nil
	case unsynced != nil:
		return rec, true, fmt.Errorf("cannot journal tool call %q: %w", c.ID, err)
	}
	rec, looked := j.recorded(ctx, c)
	switch {
	case looked == nil:
		return rec, false, nil
	case errors.Is(looked, ErrNotFound):
		return Record{}, false, fmt.Errorf("cannot journal tool call %q: %w", c.ID, err)
	}
	return Record{}, false, fmt.Errorf("cannot journal tool call %q: %w; %w: %w", c.ID, err, ErrUnknown, looked)
}

// recorded returns the call that is recorded with the identity of c, for when it cannot
// be written. The error is ErrNotFound only when there certainly is none.
func (j *Journal) recorded(ctx context.Context, c Call) (Record, error) {
	rec, err := scanRecord(j.known.QueryRowContext(ctx, findCall, c.Client, c.AgentID, c.ID))
	if errors.Is(err, ErrNotFound) {
		err = cmp.Or(j.write.present(), err) // other processes may write to another file
	}
	return rec, err
}

// Decide records a decision that does not start the call: with state Waiting
// that a person is asked, with Decided what was decided. It is on the disk when
// Decide returns.
func (j *Journal) Decide(ctx context.Context, k Key, s State, d Decision) error {
	return j.update(ctx, synced, k, "decision", `UPDATE calls SET state = ?, decided_at = ?,
		decision_action = ?, decision_by = ?, decision_rule = ?, decision_source = ?, decision_reason = ?,
		decision_person = ?, decision_widened = ?
		WHERE id = ? AND state IN ('received', 'waiting', 'decided')`,
		s, time.Now().UnixNano(), d.Action, d.By, d.Rule, d.Source, d.Reason, d.Person, d.Widened, k)
}

// Intend records the decision and that the call is about to run. Both are on
// the disk when Intend returns; only then may it run. A call can be intended
// once: the second time is ErrState.
func (j *Journal) Intend(ctx context.Context, k Key, d Decision) error {
	now := time.Now().UnixNano()
	return j.update(ctx, synced, k, "decision", `UPDATE calls SET state = 'running', decided_at = ?, intended_at = ?,
		decision_action = ?, decision_by = ?, decision_rule = ?, decision_source = ?, decision_reason = ?,
		decision_person = ?, decision_widened = ?
		WHERE id = ? AND state IN ('received', 'waiting', 'decided')`,
		now, now, d.Action, d.By, d.Rule, d.Source, d.Reason, d.Person, d.Widened, k)
}

// Started records the process of a call that runs, or did, and where its output is
// kept. It does not wait until that is written, which is within some milliseconds:
// the process of a daemon that dies before then dies with it. failed is told when it
// cannot be written.
func (j *Journal) Started(k Key, process, spoolDir string, failed func(error)) {
	now := time.Now().UnixNano()
	j.write.later(j.updating(context.Background(), k, `UPDATE calls SET process = ?, spool_dir = ?, started_at = ?
		WHERE id = ? AND state IN ('running', 'returned', 'delivered')`, process, spoolDir, now, k), saying("process", failed))
}

// Builder makes the id and the body of a return, a JSON object, for its sequence
// number. It runs inside the transaction, so it must not call the journal and
// should be quick; it may run again, with another number.
type Builder func(seq int64) (id string, body []byte, err error)

// Finish records a call's return. When it returns, the record outlives the daemon,
// and only then may the return be sent; some milliseconds later it outlives the
// machine. A call has one return: the second Finish is ErrState.
func (j *Journal) Finish(ctx context.Context, k Key, o Outcome, build Builder) (seq int64, err error) {
	err = j.write.tx(soon, func() error {
		var c Call
		var s State
		err := j.write.row(ctx, findAsked, k).Scan(&c.Client, &c.ID, &c.AgentID, &c.ConversationID, &c.RunID, &c.StepID, &c.GroupID, &c.SenderID, &s)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return ErrNotFound
		case err != nil:
			return err
		case s == Returned || s == Delivered:
			return ErrState
		}
		seq, err = j.finish(ctx, k, c.returned(o), o, build)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot journal the return of a call: %w", err)
	}
	return seq, nil
}

// findAsked reads what the return of a call repeats, and how far it is.
const findAsked = "SELECT client, tool_call_id, agent_id, conversation_id, run_id, step_id, group_id, sender_id, state FROM calls WHERE id = ?"

// Delivered records that a return was written to its client. It does not wait
// until that is written; failed is told when it cannot be. Repeating it does
// nothing.
func (j *Journal) Delivered(k Key, failed func(error)) {
	j.write.later(j.updating(context.Background(), k, `UPDATE calls SET state = 'delivered', delivered_at = coalesce(delivered_at, ?)
		WHERE id = ? AND state IN ('returned', 'delivered')`, time.Now().UnixNano(), k), saying("delivery", failed))
}

// saying puts before an error what could not be recorded.
func saying(what string, failed func(error)) func(error) {
	return func(err error) { failed(fmt.Errorf("cannot journal the %s of a call: %w", what, err)) }
}

// Append records a message that belongs to no call's life, such as an answer of
// a person, and returns its sequence number. Seq and Time are set by the
// journal; see Message for its ID.
func (j *Journal) Append(ctx context.Context, m Message) (seq int64, err error) {
	err = j.write.tx(soon, func() error {
		m.Time = time.Now()
		seq, err = j.write.append(ctx, m, nil)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot journal a message: %w", err)
	}
	return seq, nil
}

// update runs one statement that must change exactly one call.
func (j *Journal) update(ctx context.Context, d durability, k Key, what, query string, args ...any) error {
	if err := j.write.tx(d, j.updating(ctx, k, query, args...)); err != nil {
		return fmt.Errorf("cannot journal the %s of a call: %w", what, err)
	}
	return nil
}

// updating is what update does in its transaction.
func (j *Journal) updating(ctx context.Context, k Key, query string, args ...any) func() error {
	return func() error {
		r, err := j.write.exec(ctx, query, args...)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n == 1 {
			j.write.touch(k)
			return err
		}
		if _, err := scanRecord(j.write.row(ctx, findKey, k)); err != nil {
			return err
		}
		return ErrState
	}
}

// message is the request of a call as a row.
func (c *Call) message(now time.Time) Message {
	return Message{
		Time: now, Type: c.MessageType, Direction: In, Client: c.Client,
		AgentID: c.AgentID, ConversationID: c.ConversationID, RunID: c.RunID, StepID: c.StepID,
		OTID: c.OTID, GroupID: c.GroupID, SenderID: c.SenderID, CallID: c.ID, Body: c.Message,
	}
}

// returned is the return of a call as a row, but for its body.
func (c *Call) returned(o Outcome) Message {
	return Message{
		Time: time.Now(), Type: "tool_return_message", Direction: Out, Client: c.Client,
		AgentID: c.AgentID, ConversationID: c.ConversationID, RunID: c.RunID, StepID: c.StepID,
		OTID: o.OTID, GroupID: c.GroupID, SenderID: c.SenderID, CallID: c.ID, Status: o.Status,
	}
}

// row is a call as it is recorded first. What has not happened is NULL.
type row struct {
	Call
	Decision
	Outcome
	state                              State
	decided, intended, returned, reply any
}

// newRow makes the row of a call that is in some state already. With an answer its
// message is the second that follows.
func (w *writer) newRow(ctx context.Context, c Call, s State, d Decision, a *answer, now time.Time) (row, error) {
	r := row{Call: c, Decision: d, state: s}
	if s == Running || d != (Decision{}) {
		r.decided = now.UnixNano()
	}
	if s == Running {
		r.intended = now.UnixNano()
	}
	if a == nil {
		return r, nil
	}
	last, err := w.last(ctx)
	if err != nil {
		return r, err
	}
	r.Outcome, r.state, r.returned, r.reply = a.Outcome, Returned, now.UnixNano(), last.seq+2
	r.Call.Canonical = cmp.Or(a.Canonical, c.Canonical)
	return r, nil
}

// insertCall adds a call's rows unless there is one.
func (j *Journal) insertCall(ctx context.Context, r row, now time.Time) (k Key, inserted bool, err error) {
	c, d, o := r.Call, r.Decision, r.Outcome
	done, err := j.write.exec(ctx, `INSERT INTO calls (client, tool_call_id, agent_id, conversation_id, run_id, step_id, otid,
		request_message_id, dialect, tool_name, canonical_tool, args_hash, background_of, state, daemon, received_at,
		decided_at, intended_at, decision_action, decision_by, decision_rule, decision_source, decision_reason,
		decision_person, decision_widened, status, error_type, exit_code, signal, sandbox, returned_at, return_seq, group_id, sender_id, workspace)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (client, agent_id, tool_call_id) DO NOTHING`,
		c.Client, c.ID, c.AgentID, c.ConversationID, c.RunID, c.StepID, c.OTID,
		c.RequestID, c.Dialect, c.Tool, c.Canonical, c.ArgsHash, c.BackgroundOf, r.state, j.daemon.String(), now.UnixNano(),
		r.decided, r.intended, d.Action, d.By, d.Rule, d.Source, d.Reason,
		d.Person, d.Widened, o.Status, o.ErrorType, o.ExitCode, o.Signal, o.Sandbox, r.returned, r.reply, c.GroupID, c.SenderID, c.Workspace)
	if err != nil {
		return 0, false, err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return 0, false, err
	}
	id, err := done.LastInsertId()
	if err == nil {
		j.write.touch(Key(id), c.Arguments)
		_, err = j.write.exec(ctx, "INSERT INTO arguments (call, text) VALUES (?, ?)", id, string(c.Arguments))
	}
	return Key(id), err == nil, err
}

// finish records a return and completes the call's row with its outcome. The
// caller is in a transaction.
func (j *Journal) finish(ctx context.Context, k Key, m Message, o Outcome, build Builder) (seq int64, err error) {
	if seq, err = j.write.append(ctx, m, build); err != nil {
		return 0, err
	}
	j.write.touch(k)
	now, d := time.Now().UnixNano(), o.Decision
	var decided any // NULL: no decision came with the outcome, what is recorded stays
	if d != (Decision{}) {
		decided = now
	}
	_, err = j.write.exec(ctx, `UPDATE calls SET state = 'returned', returned_at = ?1, return_seq = ?2,
		status = ?3, error_type = ?4, exit_code = ?5, signal = ?6, sandbox = ?7,
		canonical_tool = iif(?8 <> '', ?8, canonical_tool), decided_at = coalesce(decided_at, ?9),
		decision_action = iif(?9 IS NULL, decision_action, ?10), decision_by = iif(?9 IS NULL, decision_by, ?11),
		decision_rule = iif(?9 IS NULL, decision_rule, ?12), decision_source = iif(?9 IS NULL, decision_source, ?13),
		decision_reason = iif(?9 IS NULL, decision_reason, ?14), decision_person = iif(?9 IS NULL, decision_person, ?15),
		decision_widened = iif(?9 IS NULL, decision_widened, ?16) WHERE id = ?17`,
		now, seq, o.Status, o.ErrorType, o.ExitCode, o.Signal, o.Sandbox, o.Canonical,
		decided, d.Action, d.By, d.Rule, d.Source, d.Reason, d.Person, d.Widened, k)
	return seq, err
}
