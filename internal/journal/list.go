package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// pageBytes bounds the bodies of a page's messages, of which a client could
// otherwise ask for a thousand of many megabytes each. A frame repeats what a body
// has once, and each client that does not read may have such a frame waiting.
const pageBytes = 1 << 20

// Query selects messages. Empty fields select all.
type Query struct {
	Before, After string // message ids: older and newer than these, whatever the order
	AfterSeq      int64  // newer than the message of this number
	Limit         int    // 0 = 100, at most 1000
	Ascending     bool   // oldest first; default newest first

	Client         string
	AgentID        string
	ConversationID string
	RunID          string
	StepID         string
	OTID           string
	GroupID        string
	SenderID       string
	Workspace      string // of the call, canonical
	CallID         string
	Status         string
	MessageTypes   []string
}

// Page is a part of the record of messages, in the order asked for: at most
// Limit of them, and fewer when their bodies are large.
type Page struct {
	Messages   []Message
	HasMore    bool   // further messages match, beyond the page's last
	NextBefore string // the id of the oldest message in the page
	NextAfter  string // the id of the newest
}

// List returns the messages that a query selects. The error is ErrNotFound when
// Before or After names no message.
func (j *Journal) List(ctx context.Context, q Query) (Page, error) {
	limit := 100
	if q.Limit > 0 {
		limit = min(q.Limit, 1000)
	}
	if err := j.settle(ctx); err != nil {
		return Page{}, fmt.Errorf("cannot list messages: %w", err)
	}
	where, args, err := j.conditions(ctx, q)
	if err != nil {
		return Page{}, err
	}
	order := "DESC"
	if q.Ascending {
		order = "ASC"
	}
	found, err := j.messages(ctx, fmt.Sprintf("SELECT %s FROM messages%s ORDER BY seq %s LIMIT %d", messageColumns, where, order, limit+1), args...)
	if err != nil {
		return Page{}, fmt.Errorf("cannot list messages: %w", err)
	}
	p := Page{Messages: found[:fitting(found, limit)]}
	p.HasMore = len(p.Messages) < len(found)
	if n := len(p.Messages); n > 0 {
		oldest, newest := p.Messages[0].ID, p.Messages[n-1].ID
		if !q.Ascending {
			oldest, newest = newest, oldest
		}
		p.NextBefore, p.NextAfter = oldest, newest
	}
	return p, nil
}

// fitting is how many messages go into a page: at least one, at most limit.
func fitting(found []Message, limit int) int {
	size := 0
	for i, m := range found {
		size += len(m.Body)
		if i == limit || i > 0 && size > pageBytes {
			return i
		}
	}
	return len(found)
}

// inWorkspace selects the messages of the calls in a workspace.
const inWorkspace = `EXISTS (SELECT 1 FROM calls WHERE workspace = ?) AND
	EXISTS (SELECT 1 FROM calls c WHERE c.client = messages.client AND c.agent_id = messages.agent_id AND c.tool_call_id = messages.tool_call_id AND c.workspace = ?)`

func (j *Journal) conditions(ctx context.Context, q Query) (where string, args []any, err error) {
	var all []string
	add := func(condition string, arg ...any) {
		all = append(all, condition)
		args = append(args, arg...)
	}
	for _, c := range []struct{ condition, id string }{{"seq < ?", q.Before}, {"seq > ?", q.After}} {
		if c.id == "" {
			continue
		}
		seq, err := j.seqOf(ctx, c.id)
		if err != nil {
			return "", nil, err
		}
		add(c.condition, seq)
	}
	if q.AfterSeq > 0 {
		add("seq > ?", q.AfterSeq)
	}
	for _, f := range []struct{ column, value string }{
		{"client", q.Client},
		{"agent_id", q.AgentID},
		{"conversation_id", q.ConversationID},
		{"run_id", q.RunID},
		{"step_id", q.StepID},
		{"otid", q.OTID},
		{"group_id", q.GroupID},
		{"sender_id", q.SenderID},
		{"tool_call_id", q.CallID},
		{"status", q.Status},
	} {
		if f.value != "" {
			add(f.column+" = ? AND "+f.column+" <> ''", f.value) // as partial indexes want it
		}
	}
	if q.Status != "" && q.Status != "success" {
		add("status NOT IN ('', 'success')")
	}
	if q.Workspace != "" {
		add(inWorkspace, q.Workspace, q.Workspace)
	}
	if n := len(q.MessageTypes); n > 0 {
		types, seldom := make([]any, n), true
		for i, t := range q.MessageTypes {
			types[i] = t
			seldom = seldom && t != "approval_request_message" && t != "tool_return_message"
		}
		if seldom {
			add("message_type NOT IN ('approval_request_message', 'tool_return_message')")
		}
		add("message_type IN ("+strings.Join(slices.Repeat([]string{"?"}, n), ", ")+")", types...)
	}
	if len(all) == 0 {
		return "", nil, nil
	}
	return " WHERE " + strings.Join(all, " AND "), args, nil
}

func (j *Journal) seqOf(ctx context.Context, id string) (seq int64, err error) {
	err = j.index.read.QueryRowContext(ctx, "SELECT seq FROM messages WHERE id = ?", id).Scan(&seq)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("message %q: %w", id, ErrNotFound)
	}
	return seq, err
}

// messages reads rows until they are more than a page holds.
func (j *Journal) messages(ctx context.Context, query string, args ...any) ([]Message, error) {
	rows, err := j.index.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Message
	size := 0
	for (size <= pageBytes || len(list) < 2) && rows.Next() {
		m, err := scanMessage(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
		size += len(m.Body)
	}
	return list, rows.Err()
}

const messageColumns = `seq, id, ts, message_type, direction, client, agent_id, conversation_id,
	run_id, step_id, otid, tool_call_id, status, body, group_id, sender_id`

func scanMessage(row scanner) (m Message, err error) {
	var ts int64
	err = row.Scan(
		&m.Seq, &m.ID, &ts, &m.Type, &m.Direction, &m.Client, &m.AgentID, &m.ConversationID,
		&m.RunID, &m.StepID, &m.OTID, &m.CallID, &m.Status, &m.Body, &m.GroupID, &m.SenderID,
	)
	m.Time = time.Unix(0, ts).UTC()
	return m, err
}
