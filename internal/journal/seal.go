package journal

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Messages are never changed, so each covers all before it. Rows of calls are: each
// transaction therefore ends with a seal, which covers the calls that it changed, the
// last message, and the seal before.

// seal is the body of a row of seals.
type seal struct {
	Time      time.Time      `json:"time"`
	Message   int64          `json:"message"`             // the last one
	Link      string         `json:"link"`                // its hash
	Calls     map[Key]digest `json:"calls,omitempty"`     // those that were changed
	Arguments map[Key]string `json:"arguments,omitempty"` // hashes of those that were recorded
}

// digest is the hashes of the parts of a call's row, in the order of parts.
type digest [4]string

// part is some columns of a call that are sealed by one hash.
type part struct {
	name    string
	about   string // what it holds, for people
	columns []string
}

// parts are all columns of calls but the key.
func parts() [4]part {
	return [4]part{
		{"request", "who asked for what, and when", []string{
			"client", "tool_call_id", "agent_id", "conversation_id", "run_id", "step_id", "otid", "group_id", "sender_id",
			"request_message_id", "dialect", "tool_name", "canonical_tool", "args_hash", "background_of", "received_at", "workspace",
		}},
		{"decision", "who decided what, why and when", []string{
			"decision_action", "decision_by", "decision_rule", "decision_source", "decision_reason", "decision_person", "decision_widened", "decided_at",
		}},
		{"course", "how far it is, its process, when it started and was delivered", []string{"state", "daemon", "process", "spool_dir", "intended_at", "started_at", "delivered_at"}},
		{"outcome", "status, exit code, result and time of its return", []string{"status", "error_type", "exit_code", "signal", "sandbox", "return_seq", "returned_at"}},
	}
}

// sealedColumns selects the columns of all parts.
func sealedColumns() (list string, n int) {
	for _, p := range parts() {
		for _, c := range p.columns {
			list += ", c." + c
			n++
		}
	}
	return list[2:], n
}

// scanDigest reads sealedColumns and whatever follows them into more.
func scanDigest(row scanner, columns int, more ...any) (d digest, err error) {
	values := make([]any, columns)
	into := make([]any, columns, columns+len(more))
	for i := range values {
		into[i] = &values[i]
	}
	if err := row.Scan(append(into, more...)...); err != nil {
		return d, err
	}
	for i, p := range parts() {
		var text []byte
		for n, v := range values[:len(p.columns)] {
			if p.columns[n] == "workspace" && v == "" {
				continue // rows of older journals have none, and were sealed without
			}
			one := fmt.Appendf(nil, "%T %v", v, v)
			text = append(binary.BigEndian.AppendUint64(text, uint64(len(one))), one...)
		}
		values = values[len(p.columns):]
		d[i] = short(text)
	}
	return d, nil
}

// short is half of a SHA-256 hash.
func short(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// sealHash covers a seal and, through prev, all before it.
func sealHash(prev []byte, seq int64, body []byte) []byte {
	h := sha256.New()
	for _, part := range [][]byte{prev, binary.BigEndian.AppendUint64(nil, uint64(seq)), body} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)
}

// touch has the transaction seal a call, and its arguments when they are given. The
// caller is in a transaction.
func (w *writer) touch(k Key, arguments ...[]byte) {
	w.touched[k] = true
	for _, text := range arguments {
		w.given[k] = short(text)
	}
}

const (
	querySeal   = "SELECT seq, hash FROM seals ORDER BY seq DESC LIMIT 1"
	querySealed = "SELECT %s FROM calls c WHERE c.id = ?" // sealedColumns
)

// seal ends a transaction that changed calls or recorded messages. The caller is in it.
func (w *writer) seal(ctx context.Context) error {
	if len(w.touched) == 0 && !w.appended {
		return nil
	}
	last, err := w.last(ctx)
	if err != nil {
		return err
	}
	s := seal{Time: time.Now().UTC(), Message: last.seq, Link: hex.EncodeToString(last.hash), Calls: map[Key]digest{}, Arguments: w.given}
	for k := range w.touched {
		if s.Calls[k], err = scanDigest(w.row(ctx, w.sealed.query, k), w.sealed.columns); err != nil {
			return err
		}
	}
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	before, err := scanSeal(w.row(ctx, querySeal))
	if err != nil {
		return err
	}
	now := note{before.seq + 1, sealHash(before.hash, before.seq+1, body)}
	if _, err = w.exec(ctx, "INSERT INTO seals (seq, body, hash) VALUES (?, ?, ?)", now.seq, string(body), now.hash); err != nil {
		return err
	}
	w.sealing = &now
	w.fresh += len(body)
	return nil
}

// scanSeal reads the answer to querySeal; without seals it has number 0.
func scanSeal(row scanner) (n note, err error) {
	if err = row.Scan(&n.seq, &n.hash); errors.Is(err, sql.ErrNoRows) {
		return note{}, nil
	}
	return n, err
}

// sealAll seals every call of a journal that has no seals yet. The caller is in a
// transaction.
func (w *writer) sealAll(ctx context.Context) error {
	rows, err := w.conn.QueryContext(ctx, "SELECT c.id, a.text FROM calls c LEFT JOIN arguments a ON a.call = c.id")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var k Key
		var text sql.NullString
		if err := rows.Scan(&k, &text); err != nil {
			return err
		}
		if w.touch(k); text.Valid {
			w.touch(k, []byte(text.String))
		}
	}
	return rows.Err()
}

// describe names a call in an error.
func describe(k Key, id string) string {
	return "call " + strconv.Quote(id) + " (number " + strconv.FormatInt(int64(k), 10) + ")"
}
