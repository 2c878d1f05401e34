// Package legacy verifies and reads the SQLite journal of 0.1.0-dev, journal.db, without changing
// it.
package legacy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Schema is the supported schema version.
const Schema = 7

// ErrTampered says that the journal was changed from outside.
var ErrTampered = errors.New("it was changed from outside")

func tampered(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTampered, fmt.Sprintf(format, args...))
}

// Verify checks the hash chains of messages and seals, each call against its last seal, and the end against the file
// head.
func (j *Journal) Verify(ctx context.Context, dir string) error {
	tx, err := j.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	v := &verification{tx: tx, calls: map[int64]digest{}, arguments: map[int64]string{}}
	for _, check := range []func(context.Context) error{v.checkMessages, v.checkSeals, v.checkCalls} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return v.checkHead(dir)
}

type verification struct {
	tx        *sql.Tx
	hashes    [][]byte // of messages, the first at 0
	seals     [][]byte // of seals, the first at 0
	covered   int64    // number of the last sealed message
	calls     map[int64]digest
	arguments map[int64]string
}

func (v *verification) each(ctx context.Context, query string, row func(*sql.Rows) error) error {
	rows, err := v.tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (v *verification) checkMessages(ctx context.Context) error {
	before := []byte{}
	err := v.each(ctx, `SELECT seq, ts, id, message_type, direction, client, agent_id, conversation_id, run_id, step_id, otid,
		tool_call_id, status, body, group_id, sender_id, prev_hash, hash FROM messages ORDER BY seq`, func(rows *sql.Rows) error {
		var seq, ts int64
		var text [14][]byte
		var prev, stored []byte
		into := []any{&seq, &ts}
		for i := range text {
			into = append(into, &text[i])
		}
		if err := rows.Scan(append(into, &prev, &stored)...); err != nil {
			return err
		}
		fields := append([][]byte{prev, number(seq), number(ts)}, text[:12]...)
		if len(text[12])+len(text[13]) > 0 { // older messages have neither
			fields = append(fields, text[12], text[13])
		}
		if seq != int64(len(v.hashes))+1 || !bytes.Equal(prev, before) || !bytes.Equal(stored, hash(fields...)) {
			return tampered("message number %d (%s of call %q) does not fit its hash or the message before it", seq, text[1], text[9])
		}
		before = stored
		v.hashes = append(v.hashes, stored)
		return nil
	})
	if err != nil {
		return err
	}
	last := int64(0)
	err = v.tx.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'messages'").Scan(&last)
	if err == nil && last != int64(len(v.hashes)) {
		return tampered("messages after number %d are missing", len(v.hashes))
	}
	return err
}

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func hash(texts ...[]byte) []byte {
	h := sha256.New()
	for _, text := range texts {
		h.Write(number(int64(len(text))))
		h.Write(text)
	}
	return h.Sum(nil)
}

type seal struct {
	Message   int64            `json:"message"`
	Link      string           `json:"link"`
	Calls     map[int64]digest `json:"calls"`
	Arguments map[int64]string `json:"arguments"`
}

// digest holds the hashes of a call's parts, in the order of parts.
type digest [4]string

func (v *verification) checkSeals(ctx context.Context) error {
	var before []byte
	err := v.each(ctx, "SELECT seq, body, hash FROM seals ORDER BY seq", func(rows *sql.Rows) error {
		var seq int64
		var body, stored []byte
		if err := rows.Scan(&seq, &body, &stored); err != nil {
			return err
		}
		var s seal
		if seq != int64(len(v.seals))+1 || !bytes.Equal(stored, hash(before, number(seq), body)) || json.Unmarshal(body, &s) != nil {
			return tampered("seal number %d does not fit its hash or the seal before it", seq)
		}
		var link []byte
		if s.Message > 0 && s.Message <= int64(len(v.hashes)) {
			link = v.hashes[s.Message-1]
		}
		if s.Message < v.covered || s.Link != hex.EncodeToString(link) {
			return tampered("message number %d is not the one that was sealed", s.Message)
		}
		v.covered, before = s.Message, stored
		v.seals = append(v.seals, stored)
		maps.Copy(v.calls, s.Calls)
		maps.Copy(v.arguments, s.Arguments)
		return nil
	})
	if err == nil && v.covered != int64(len(v.hashes)) {
		return tampered("message number %d was added: no seal covers it", v.covered+1)
	}
	return err
}

// parts lists all columns of calls except the key, grouped as they were sealed.
func parts() [4][]string {
	return [4][]string{
		{
			"client", "tool_call_id", "agent_id", "conversation_id", "run_id", "step_id", "otid", "group_id", "sender_id",
			"request_message_id", "dialect", "tool_name", "canonical_tool", "args_hash", "background_of", "received_at", "workspace",
		},
		{"decision_action", "decision_by", "decision_rule", "decision_source", "decision_reason", "decision_person", "decision_widened", "decided_at"},
		{"state", "daemon", "process", "spool_dir", "intended_at", "started_at", "delivered_at"},
		{"status", "error_type", "exit_code", "signal", "sandbox", "return_seq", "returned_at"},
	}
}

func (v *verification) checkCalls(ctx context.Context) error {
	columns := ""
	for _, part := range parts() {
		for _, c := range part {
			columns += "c." + c + ", "
		}
	}
	err := v.each(ctx, "SELECT "+columns+"c.id, a.text FROM calls c LEFT JOIN arguments a ON a.call = c.id ORDER BY c.id", v.checkCall)
	if err == nil && len(v.calls) > 0 {
		return tampered("call number %d was removed", slices.Min(slices.Collect(maps.Keys(v.calls))))
	}
	return err
}

func (v *verification) checkCall(rows *sql.Rows) error {
	var values, into []any
	names := slices.Concat(parts()[0], parts()[1], parts()[2], parts()[3])
	values = make([]any, len(names))
	for i := range values {
		into = append(into, &values[i])
	}
	var key int64
	var arguments sql.NullString
	if err := rows.Scan(append(into, &key, &arguments)...); err != nil {
		return err
	}
	var now digest
	at := 0
	for i, part := range parts() {
		var text []byte
		for _, column := range part {
			value := values[at]
			at++
			if column == "workspace" && value == "" {
				continue // older rows were sealed without a workspace
			}
			one := fmt.Appendf(nil, "%T %v", value, value)
			text = append(append(text, number(int64(len(one)))...), one...)
		}
		now[i] = short(text)
	}
	text := ""
	if arguments.Valid {
		text = short([]byte(arguments.String))
	}
	if was, known := v.calls[key]; !known || was != now || text != v.arguments[key] {
		return tampered("call %q (number %d) is not as it was recorded", values[1], key)
	}
	delete(v.calls, key)
	return nil
}

func short(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

func (v *verification) checkHead(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "head"))
	if errors.Is(err, fs.ErrNotExist) {
		return tampered("the file head, which notes its end, is missing")
	}
	var seq int
	var sum string
	_, _ = fmt.Sscanf(string(text), "%d %s", &seq, &sum)
	switch {
	case err != nil:
		return err
	case seq < 0, seq > len(v.seals):
	case seq == 0, sum == hex.EncodeToString(v.seals[seq-1]):
		return nil
	}
	return tampered("its end is missing, or it is another journal: seal number %d is not the one that the file head notes", seq)
}
