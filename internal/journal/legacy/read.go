package legacy

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	_ "modernc.org/sqlite" // the driver
)

// Journal is an open journal of 0.1.0-dev.
type Journal struct{ db *sql.DB }

// Row is one row of a query.
type Row interface{ Scan(dest ...any) error }

// Open opens the journal in a file.
func Open(ctx context.Context, path string) (*Journal, error) {
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw&_pragma=busy_timeout(5000)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	schema := 0
	err = db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&schema)
	if err == nil && schema != Schema {
		err = fmt.Errorf("it has schema %d, and only %d can be imported: start the last 0.1.0-dev with it once", schema, Schema)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Journal{db}, nil
}

func (j *Journal) Close() error { return j.db.Close() }

// Complete moves the content of the write-ahead log into the file.
func (j *Journal) Complete(ctx context.Context) error {
	_, err := j.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// Messages passes all messages to each, in order: number, id, time, type, direction, client, agent, conversation, run,
// step, OTID, call, status, body, group, sender.
func (j *Journal) Messages(ctx context.Context, each func(Row) error) error {
	return j.each(ctx, `SELECT seq, id, ts, message_type, direction, client, agent_id, conversation_id,
		run_id, step_id, otid, tool_call_id, status, body, group_id, sender_id FROM messages ORDER BY seq`, each)
}

// EarlyCancels passes the client and id of each early cancel to each, in order.
func (j *Journal) EarlyCancels(ctx context.Context, each func(Row) error) error {
	return j.each(ctx, "SELECT client, tool_call_id FROM fences ORDER BY id", each)
}

// Call returns the row of a call: its names, decision, process, return, times, number of the return, and arguments.
func (j *Journal) Call(ctx context.Context, client, agent, id string) Row {
	return j.db.QueryRowContext(ctx, `SELECT c.id, c.client, c.tool_call_id, c.agent_id, c.conversation_id, c.run_id, c.step_id, c.otid, c.group_id, c.sender_id, c.workspace,
		c.request_message_id, c.dialect, c.tool_name, c.canonical_tool, c.args_hash, c.background_of, c.state,
		c.decision_action, c.decision_by, c.decision_rule, c.decision_source, c.decision_reason, c.decision_person, c.decision_widened,
		c.daemon, c.process, c.spool_dir, c.status, c.error_type, c.exit_code, c.signal, c.sandbox,
		c.received_at, c.decided_at, c.intended_at, c.started_at, c.returned_at, c.delivered_at, coalesce(c.return_seq, 0), a.text
		FROM calls c LEFT JOIN arguments a ON a.call = c.id WHERE c.client = ? AND c.agent_id = ? AND c.tool_call_id = ? ORDER BY c.id DESC LIMIT 1`, client, agent, id)
}

func (j *Journal) each(ctx context.Context, query string, each func(Row) error) error {
	rows, err := j.db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
