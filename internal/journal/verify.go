package journal

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Verify reads the whole journal and checks that nothing of it was changed, added or
// removed: the chain of messages, the chain of seals, each call and its arguments
// against the last seal of it, and the end against the file head. The error is
// ErrTampered and names the first record that does not fit, and what of it.
//
// Who can write the files and knows this program can make both chains anew: only a link
// that was kept elsewhere shows that; see Linked.
func (j *Journal) Verify(ctx context.Context) error {
	noted, err := readNote(j.write.path) // before the snapshot, which is then no shorter
	if err != nil {
		return err
	}
	tx, err := j.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("cannot verify the journal: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	v := &verification{tx: tx, sealed: seal{Calls: map[Key]digest{}, Arguments: map[Key]string{}}}
	for _, check := range []func(context.Context) error{v.schema, v.messages, v.seals, v.calls} {
		if err := check(ctx); errors.Is(err, ErrTampered) {
			return err
		} else if err != nil {
			return fmt.Errorf("cannot verify the journal: %w", err)
		}
	}
	return noted.holds(ctx, tx)
}

// verification is one Verify.
type verification struct {
	tx     *sql.Tx
	hashes [][]byte // of the messages, the first at 0
	sealed seal     // the latest of each call; the last message that is sealed
}

func tampered(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTampered, fmt.Sprintf(format, args...))
}

// schema looks for what would change rows as they are written or read.
func (v *verification) schema(ctx context.Context) error {
	var kind, name string
	err := v.tx.QueryRowContext(ctx, "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index') LIMIT 1").Scan(&kind, &name)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return tampered("it has the %s %q, which toold did not make", kind, name)
}

func (v *verification) messages(ctx context.Context) error {
	last, _, err := scanHead(v.tx.QueryRowContext(ctx, queryHead))
	if err != nil {
		return err
	}
	rows, err := v.tx.QueryContext(ctx, "SELECT "+messageColumns+", prev_hash, hash FROM messages ORDER BY seq")
	if err != nil {
		return err
	}
	defer rows.Close()
	seq, hash := int64(0), []byte{}
	for rows.Next() {
		var prev, stored []byte
		m, err := scanMessage(rows, &prev, &stored)
		if err != nil {
			return err
		}
		if m.Seq != seq+1 || !bytes.Equal(prev, hash) || !bytes.Equal(stored, m.hash(prev)) {
			return tampered("message number %d (%s of call %q) does not fit its hash or the message before it", m.Seq, m.Type, m.CallID)
		}
		seq, hash = m.Seq, stored
		v.hashes = append(v.hashes, stored)
	}
	if err := rows.Err(); err != nil || seq == last {
		return err
	}
	return tampered("messages after number %d are missing", seq)
}

// seals checks the chain of seals, and that it covers every message.
func (v *verification) seals(ctx context.Context) error {
	rows, err := v.tx.QueryContext(ctx, "SELECT seq, body, hash FROM seals ORDER BY seq")
	if err != nil {
		return err
	}
	defer rows.Close()
	var before note
	for rows.Next() {
		var n note
		var body []byte
		if err := rows.Scan(&n.seq, &body, &n.hash); err != nil {
			return err
		}
		if n.seq != before.seq+1 || !bytes.Equal(n.hash, sealHash(before.hash, n.seq, body)) {
			return tampered("seal number %d does not fit its hash or the seal before it", n.seq)
		}
		if err := v.add(n.seq, body); err != nil {
			return err
		}
		before = n
	}
	n := v.sealed.Message
	if err := rows.Err(); err != nil || n == int64(len(v.hashes)) {
		return err
	}
	return tampered("message number %d was added: no seal covers it", n+1)
}

// add takes up a seal, which replaces what earlier ones say of the same calls.
func (v *verification) add(seq int64, body []byte) error {
	var s seal
	if err := json.Unmarshal(body, &s); err != nil {
		return tampered("seal number %d cannot be read: %v", seq, err)
	}
	link := []byte{}
	switch {
	case s.Message < v.sealed.Message || s.Message > int64(len(v.hashes)):
		return tampered("messages after number %d are missing: seal number %d covers %d", len(v.hashes), seq, s.Message)
	case s.Message > 0:
		link = v.hashes[s.Message-1]
	}
	if s.Link != hex.EncodeToString(link) {
		return tampered("message number %d is not the one that was sealed", s.Message)
	}
	v.sealed.Message = s.Message
	for k, d := range s.Calls {
		v.sealed.Calls[k] = d
	}
	for k, hash := range s.Arguments {
		v.sealed.Arguments[k] = hash
	}
	return nil
}

// calls compares each call and its arguments with what was sealed.
func (v *verification) calls(ctx context.Context) error {
	columns, n := sealedColumns()
	rows, err := v.tx.QueryContext(ctx, "SELECT "+columns+", c.id, c.tool_call_id, a.text FROM calls c LEFT JOIN arguments a ON a.call = c.id ORDER BY c.id")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var k Key
		var id string
		var arguments sql.NullString
		now, err := scanDigest(rows, n, &k, &id, &arguments)
		if err != nil {
			return err
		}
		was, known := v.sealed.Calls[k]
		if !known {
			return tampered("%s was added", describe(k, id))
		}
		for i, p := range parts() {
			if now[i] != was[i] {
				return tampered("the %s of %s was changed (%s)", p.name, describe(k, id), p.about)
			}
		}
		text := ""
		if arguments.Valid {
			text = short([]byte(arguments.String))
		}
		if text != v.sealed.Arguments[k] {
			return tampered("the arguments of %s were changed or removed", describe(k, id))
		}
		delete(v.sealed.Calls, k)
	}
	if err := rows.Err(); err != nil || len(v.sealed.Calls) == 0 {
		return err
	}
	return tampered("the call with number %d was removed", slices.Min(slices.Collect(maps.Keys(v.sealed.Calls))))
}
