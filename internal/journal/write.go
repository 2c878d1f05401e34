package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Receive records a call and its message. A call that is recorded already is
// returned as it stands, and fresh is false: nothing is changed.
func (j *Journal) Receive(ctx context.Context, c Call) (rec Record, fresh bool, err error) {
	err = j.write.tx(ctx, lazy, func() error {
		now := time.Now()
		key, inserted, err := j.insertCall(ctx, c, now)
		if err != nil {
			return err
		}
		if !inserted {
			rec, err = scanRecord(j.write.row(ctx, findCall, c.Client, c.AgentID, c.ID))
			return err
		}
		asked := c.message(now)
		c.MessageType, c.Message, c.Arguments = "", nil, nil
		rec, fresh = Record{Key: key, Call: c, State: Received, Daemon: j.daemon, ReceivedAt: now}, true
		_, err = j.write.append(ctx, func(int64) (Message, error) { return asked, nil })
		return err
	})
	if err != nil {
		return Record{}, false, fmt.Errorf("cannot journal tool call %q: %w", c.ID, err)
	}
	return rec, fresh, nil
}

// Decide records a decision that does not start the call: with state Waiting
// that a person is asked, with Decided what was decided. It is on the disk when
// Decide returns.
func (j *Journal) Decide(ctx context.Context, k Key, s State, d Decision) error {
	return j.update(ctx, synced, k, "decision", `UPDATE calls SET state = ?, decided_at = ?,
		decision_action = ?, decision_by = ?, decision_rule = ?, decision_source = ?, decision_reason = ?
		WHERE id = ? AND state IN ('received', 'waiting', 'decided')`,
		s, time.Now().UnixNano(), d.Action, d.By, d.Rule, d.Source, d.Reason, k)
}

// Intend records the decision and that the call is about to run. Both are on
// the disk when Intend returns; only then may it run. A call can be intended
// once: the second time is ErrState.
func (j *Journal) Intend(ctx context.Context, k Key, d Decision) error {
	now := time.Now().UnixNano()
	return j.update(ctx, synced, k, "decision", `UPDATE calls SET state = 'running', decided_at = ?, intended_at = ?,
		decision_action = ?, decision_by = ?, decision_rule = ?, decision_source = ?, decision_reason = ?
		WHERE id = ? AND state IN ('received', 'waiting', 'decided')`,
		now, now, d.Action, d.By, d.Rule, d.Source, d.Reason, k)
}

// Started records the process of a running call and where its output is kept.
func (j *Journal) Started(ctx context.Context, k Key, process, spoolDir string) error {
	return j.update(ctx, lazy, k, "process", `UPDATE calls SET process = ?, spool_dir = ?, started_at = ?
		WHERE id = ? AND state = 'running'`, process, spoolDir, time.Now().UnixNano(), k)
}

// Finish records a call's return. build gets the sequence number of the return
// message and makes its id and its body, which must be a JSON object; it runs
// inside the transaction, so it must not call the journal and should be quick.
// All of it is on the disk when Finish returns; only then may the return be
// sent. A call has one return: the second Finish is ErrState.
func (j *Journal) Finish(ctx context.Context, k Key, o Outcome, build func(seq int64) (id string, body []byte, err error)) (seq int64, err error) {
	err = j.write.tx(ctx, synced, func() error {
		rec, err := scanRecord(j.write.row(ctx, findKey, k))
		if err != nil {
			return err
		}
		if rec.State == Returned || rec.State == Delivered {
			return ErrState
		}
		seq, err = j.write.append(ctx, func(seq int64) (Message, error) {
			m := rec.returned(o)
			m.ID, m.Body, err = build(seq)
			return m, err
		})
		if err != nil {
			return err
		}
		return j.finish(ctx, k, o, seq)
	})
	if err != nil {
		return 0, fmt.Errorf("cannot journal the return of a call: %w", err)
	}
	return seq, nil
}

// Delivered records that a return was written to its client. Repeating it does
// nothing.
func (j *Journal) Delivered(ctx context.Context, k Key) error {
	return j.update(ctx, lazy, k, "delivery", `UPDATE calls SET state = 'delivered', delivered_at = coalesce(delivered_at, ?)
		WHERE id = ? AND state IN ('returned', 'delivered')`, time.Now().UnixNano(), k)
}

// Append records a message that belongs to no call's life, such as an answer of
// a person, and returns its sequence number. Seq and Time are set by the
// journal; see Message for its ID.
func (j *Journal) Append(ctx context.Context, m Message) (seq int64, err error) {
	err = j.write.tx(ctx, lazy, func() error {
		m.Time = time.Now()
		seq, err = j.write.append(ctx, func(int64) (Message, error) { return m, nil })
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot journal a message: %w", err)
	}
	return seq, nil
}

// update runs one statement that must change exactly one call.
func (j *Journal) update(ctx context.Context, d durability, k Key, what, query string, args ...any) error {
	err := j.write.tx(ctx, d, func() error {
		n, err := j.write.exec(ctx, query, args...)
		if err != nil || n == 1 {
			return err
		}
		if _, err := scanRecord(j.write.row(ctx, findKey, k)); err != nil {
			return err
		}
		return ErrState
	})
	if err != nil {
		return fmt.Errorf("cannot journal the %s of a call: %w", what, err)
	}
	return nil
}

// message is the request of a call as a row.
func (c *Call) message(now time.Time) Message {
	return Message{
		Time: now, Type: c.MessageType, Direction: In, Client: c.Client,
		AgentID: c.AgentID, ConversationID: c.ConversationID, RunID: c.RunID, StepID: c.StepID,
		OTID: c.OTID, CallID: c.ID, Body: c.Message,
	}
}

// returned is the return of a call as a row, but for its body.
func (r *Record) returned(o Outcome) Message {
	return Message{
		Time: time.Now(), Type: "tool_return_message", Direction: Out, Client: r.Client,
		AgentID: r.AgentID, ConversationID: r.ConversationID, RunID: r.RunID, StepID: r.StepID,
		OTID: o.OTID, CallID: r.ID, Status: o.Status,
	}
}

// insertCall adds a call's rows unless there is one.
func (j *Journal) insertCall(ctx context.Context, c Call, now time.Time) (k Key, inserted bool, err error) {
	err = j.write.row(ctx, `INSERT INTO calls (client, tool_call_id, agent_id, conversation_id, run_id, step_id, otid,
		request_message_id, dialect, tool_name, canonical_tool, args_hash, background_of, state, daemon, received_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'received', ?, ?)
		ON CONFLICT (client, agent_id, tool_call_id) DO NOTHING RETURNING id`,
		c.Client, c.ID, c.AgentID, c.ConversationID, c.RunID, c.StepID, c.OTID,
		c.RequestID, c.Dialect, c.Tool, c.Canonical, c.ArgsHash, c.BackgroundOf, j.daemon.String(), now.UnixNano()).Scan(&k)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err == nil {
		_, err = j.write.exec(ctx, "INSERT INTO arguments (call, text) VALUES (?, ?)", k, string(c.Arguments))
	}
	return k, err == nil, err
}

// finish completes a call's row with its outcome.
func (j *Journal) finish(ctx context.Context, k Key, o Outcome, seq int64) error {
	_, err := j.write.exec(ctx, `UPDATE calls SET state = 'returned', returned_at = ?, return_seq = ?,
		status = ?, error_type = ?, exit_code = ?, signal = ?, sandbox = ?,
		canonical_tool = iif(? <> '', ?, canonical_tool) WHERE id = ?`,
		time.Now().UnixNano(), seq, o.Status, o.ErrorType, o.ExitCode, o.Signal, o.Sandbox, o.Canonical, o.Canonical, k)
	if err != nil || o.Decision == (Decision{}) {
		return err
	}
	d := o.Decision
	_, err = j.write.exec(ctx, `UPDATE calls SET decided_at = coalesce(decided_at, ?), decision_action = ?, decision_by = ?,
		decision_rule = ?, decision_source = ?, decision_reason = ? WHERE id = ?`,
		time.Now().UnixNano(), d.Action, d.By, d.Rule, d.Source, d.Reason, k)
	return err
}
