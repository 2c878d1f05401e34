package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toold/toold/message"
)

// head is the end of the chain: the last number ever used, and the hash of that
// row.
type head struct {
	seq  int64
	hash []byte
}

// last is the end of the chain. The caller is in a transaction.
func (w *writer) last(ctx context.Context) (*head, error) {
	if w.head == nil {
		seq, hash, err := scanHead(w.row(ctx, queryHead))
		if err != nil {
			return nil, err
		}
		w.head = &head{seq, hash}
	}
	return w.head, nil
}

// append adds a message at the end of the chain. Without build its id and body
// are its own. The caller is in a transaction.
func (w *writer) append(ctx context.Context, m Message, build Builder) (seq int64, err error) {
	last, err := w.last(ctx)
	if err != nil {
		return 0, err
	}
	prev := last.hash
	m.Seq = last.seq + 1
	if build != nil {
		if m.ID, m.Body, err = build(m.Seq); err != nil {
			return 0, err
		}
	}
	if m.Direction == In {
		if m, err = stamped(m); err != nil {
			return 0, err
		}
	}
	hash := m.hash(prev)
	_, err = w.exec(ctx, `INSERT INTO messages (seq, id, ts, message_type, direction, client, agent_id, conversation_id,
		run_id, step_id, otid, tool_call_id, status, body, group_id, sender_id, prev_hash, hash)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.Seq, m.ID, m.Time.UnixNano(), m.Type, m.Direction, m.Client, m.AgentID, m.ConversationID,
		m.RunID, m.StepID, m.OTID, m.CallID, m.Status, string(m.Body), m.GroupID, m.SenderID, prev, hash)
	w.head, w.appended = &head{m.Seq, hash}, true
	w.news.fresh = append(w.news.fresh, m)
	w.fresh += len(m.Body)
	return m.Seq, err
}

// stamped gives a message that came in an id and writes it, the number, the
// date and the type into its body. Ids that clients choose need not be unique;
// what list_messages shows must have one that is.
func stamped(m Message) (Message, error) {
	if m.ID == "" {
		m.ID = message.NewID("message")
	}
	rest, err := unstamped(m.Body)
	if err != nil {
		return m, err
	}
	stamp, err := message.Encode(struct {
		ID   string `json:"id"`
		Seq  int64  `json:"seq_id"`
		Date string `json:"date"`
		Type string `json:"message_type"`
	}{m.ID, m.Seq, m.Time.UTC().Format(time.RFC3339Nano), m.Type})
	if err != nil {
		return m, err
	}
	if len(rest) > len("{}") {
		stamp[len(stamp)-1] = ','
		stamp = append(stamp, rest[1:]...)
	}
	m.Body = stamp
	return m, nil
}

// unstamped is a JSON object without the fields of a stamp and without spaces
// around its first brace.
func unstamped(body []byte) ([]byte, error) {
	if bytes.HasPrefix(body, []byte(`{"`)) && !mayBeStamped(body) && json.Valid(body) {
		return body, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("the body of a message is no JSON object (%v)", err)
	}
	for _, name := range []string{"id", "seq_id", "date", "message_type"} {
		delete(fields, name)
	}
	return message.Encode(fields)
}

// mayBeStamped is false only for objects that have none of the fields of a stamp:
// their names, which can be escaped, stand nowhere in the text.
func mayBeStamped(body []byte) bool {
	for _, name := range []string{`"id"`, `"seq_id"`, `"date"`, `"message_type"`, `\u`} {
		if bytes.Contains(body, []byte(name)) {
			return true
		}
	}
	return false
}

// queryHead reads the last sequence number ever used, from SQLite's own count,
// and the hash of that row.
const queryHead = `SELECT s.seq, m.hash FROM sqlite_sequence s LEFT JOIN messages m ON m.seq = s.seq WHERE s.name = 'messages'`

// scanHead reads the answer to queryHead. An empty chain has number 0 and an
// empty hash.
func scanHead(row scanner) (seq int64, hash []byte, err error) {
	err = row.Scan(&seq, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, []byte{}, nil
	}
	if err == nil && hash == nil {
		return 0, nil, fmt.Errorf("%w: the last message, number %d, is missing", ErrTampered, seq)
	}
	return seq, hash, err
}

// hash covers the message and, through prev, every message before it. Each
// field is preceded by its length, so that no two messages have one encoding.
func (m *Message) hash(prev []byte) []byte {
	h := sha256.New()
	field := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	field(prev)
	field(binary.BigEndian.AppendUint64(nil, uint64(m.Seq)))
	field(binary.BigEndian.AppendUint64(nil, uint64(m.Time.UnixNano())))
	for _, s := range []string{
		m.ID, m.Type, string(m.Direction), m.Client, m.AgentID, m.ConversationID,
		m.RunID, m.StepID, m.OTID, m.CallID, m.Status,
	} {
		field([]byte(s))
	}
	field(m.Body)
	if m.GroupID+m.SenderID != "" { // older messages have neither
		field([]byte(m.GroupID))
		field([]byte(m.SenderID))
	}
	return h.Sum(nil)
}

// Link returns the number of the last message and the hash of the last seal, which covers
// all that is recorded. Who keeps both elsewhere can tell later whether the journal was
// made anew; see Linked. The error is ErrNotFound if nothing is recorded.
func (j *Journal) Link(ctx context.Context) (seq int64, hash []byte, err error) {
	j.write.settle()
	err = j.read.QueryRowContext(ctx, "SELECT json_extract(body, '$.message'), hash FROM seals ORDER BY seq DESC LIMIT 1").Scan(&seq, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil, ErrNotFound
	}
	return seq, hash, err
}

// Linked reports whether the journal has a link that Link has returned once.
func (j *Journal) Linked(ctx context.Context, seq int64, hash []byte) (linked bool, err error) {
	err = j.read.QueryRowContext(ctx, "SELECT count(*) > 0 FROM seals WHERE hash = ? AND json_extract(body, '$.message') = ?", hash, seq).Scan(&linked)
	return linked, err
}

const messageColumns = `seq, id, ts, message_type, direction, client, agent_id, conversation_id,
	run_id, step_id, otid, tool_call_id, status, body, group_id, sender_id`

// scanMessage reads messageColumns and whatever follows them into more.
func scanMessage(row scanner, more ...any) (m Message, err error) {
	var ts int64
	err = row.Scan(append([]any{
		&m.Seq, &m.ID, &ts, &m.Type, &m.Direction, &m.Client, &m.AgentID, &m.ConversationID,
		&m.RunID, &m.StepID, &m.OTID, &m.CallID, &m.Status, &m.Body, &m.GroupID, &m.SenderID,
	}, more...)...)
	m.Time = time.Unix(0, ts).UTC()
	return m, err
}
