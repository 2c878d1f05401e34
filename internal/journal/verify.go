package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toold/toold/internal/journal/chain"
)

// Made returns ErrNotFound when no journal was made in dir, and ErrTampered when there is only
// the note of where one ends.
func Made(dir string) error {
	_, err := os.Stat(logDir(dir))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	note := filepath.Join(notesDir(dir), noteName)
	if _, err := os.Stat(note); err == nil {
		return tampered("it is missing in %s, and %s notes where it ends", dir, note)
	}
	return ErrNotFound
}

// Link is the number of a record and its hash, which covers all records up to it. The zero
// Link is that of no record.
type Link struct {
	Number uint64
	Hash   chain.Hash
}

// Verify checks that nothing of the journal in dir was changed, added or removed, its index
// included, its signatures, and that it has what was kept elsewhere. The error is ErrTampered
// and names the first record that does not fit. Only what was kept elsewhere shows that all
// files were made anew.
func Verify(ctx context.Context, dir string, checks Checks) (Report, error) {
	f, err := openFiles(dir)
	defer f.close()
	if err != nil {
		return Report{}, fmt.Errorf("cannot verify the journal: %w", err)
	}
	for {
		r, err := verify(ctx, &f, checks)
		switch {
		case errors.Is(err, chain.ErrNoMark):
			continue // a part was removed meanwhile
		case err != nil && !errors.Is(err, ErrTampered):
			return Report{}, fmt.Errorf("cannot verify the journal: %w", err)
		}
		return r, err
	}
}

// Report is what Verify has found to be whole.
type Report struct {
	Link        // the last
	Gone uint64 // so many records before were removed with their part of the journal
	Cuts []Cut
	Checkpoints
}

// Cut is what toold has removed from the end of the log, because it was no whole record: a
// process or the machine ended while it was written.
type Cut struct {
	Number uint64 // of the record that says so
	Time   time.Time
	Bytes  int64
	Text   []byte // the first of them
}

func verify(ctx context.Context, f *files, checks Checks) (Report, error) {
	kept := checks.Kept
	v := verification{kept: kept, met: kept == Link{}, signed: newCheckpoints(checks), texts: texts{dir: f.log, strict: true}}
	defer v.close()
	mark, rest, err := v.verify(ctx, f)
	var damage *chain.DamageError
	switch {
	case errors.As(err, &damage):
		return Report{}, fmt.Errorf("%w: %w%s", ErrTampered, err, v.touched(f, damage.Mark))
	case err != nil:
		return Report{}, err
	case rest > 0:
		return Report{}, tampered("%d bytes follow record number %d and are none: toold was killed while it wrote them, and removes them when it starts, or they were added", rest, mark.Number)
	case !v.met && kept.Number <= v.report.Gone:
		return Report{}, fmt.Errorf("record number %d was removed with its part of the journal, which begins with number %d now: keep a later link", kept.Number, v.report.Gone+1)
	case !v.met:
		return Report{}, tampered("record number %d is not the one that was noted", kept.Number)
	}
	v.report.Link = Link{mark.Number, mark.Hash}
	err = v.signed.end()
	v.report.Checkpoints = v.signed.Checkpoints
	return v.report, err
}

func tampered(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTampered, fmt.Sprintf(format, args...))
}

// verification is one Verify. Beside the index that is there it makes one of its own.
type verification struct {
	kept   Link
	met    bool
	signed *checkpoints
	texts  texts
	lost   bool   // a text beside the log is lost, and all records are whole
	gone   uint64 // the last record that says that a part was removed
	begun  bool
	report Report

	db    *sql.DB
	there *sql.Tx    // nil without an index
	at    chain.Mark // what it has
	own   *index
	fill  *filler
}

func (v *verification) verify(ctx context.Context, f *files) (last chain.Mark, rest int64, err error) {
	if err := v.open(ctx, f.indexPath()); err != nil {
		return last, 0, err
	}
	o := f.options(func(rec chain.Record) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return v.add(rec)
	})
	o.Own = v.addOwn
	last, rest, err = chain.Verify(o)
	if err != nil {
		return last, rest, err
	}
	if last.Number < v.at.Number {
		return last, rest, tampered("the index was made from %d records, and there are %d", v.at.Number, last.Number)
	}
	return last, rest, v.compare(ctx, v.at)
}

// open opens the index, and makes another one in a temporary file.
func (v *verification) open(ctx context.Context, path string) (err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if v.db, err = sql.Open("sqlite", address(path, "_pragma=query_only(1)")); err != nil {
		return err
	}
	if v.there, err = v.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
		return v.unreadable(err)
	}
	var version int
	if err := v.there.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return v.unreadable(err)
	}
	if version != indexVersion {
		v.there = nil // it is not used
		return nil
	}
	if v.at, err = scanPosition(v.there.QueryRowContext(ctx, queryPosition)); err != nil {
		return v.unreadable(err)
	}
	v.own = &index{stmts: map[string]*sql.Stmt{}, texts: v.texts}
	if err := v.own.writer(ctx, ""); err != nil {
		return err
	}
	if _, err = v.own.exec("BEGIN"); err == nil {
		v.fill, err = v.own.filler()
	}
	return err
}

func (v *verification) unreadable(err error) error {
	if isSQLite(err) {
		return tampered("the index cannot be read: %v. Nothing is lost: remove %s, and it is made anew", err, indexName)
	}
	return err
}

// addOwn takes up a record that is the log's own.
func (v *verification) addOwn(rec chain.Record) {
	v.meet(rec)
	if size, text := chain.CutOf(rec); size > 0 {
		v.report.Cuts = append(v.report.Cuts, Cut{rec.Number, rec.Time, size, text})
	}
}

func (v *verification) meet(rec chain.Record) {
	if !v.begun {
		v.begun, v.report.Gone = true, rec.Number-1
	}
	if rec.Number == v.kept.Number && rec.Hash == v.kept.Hash {
		v.met = true
	}
}

func (v *verification) add(rec chain.Record) error {
	v.meet(rec)
	if err := v.signed.add(rec); err != nil {
		return err
	}
	e, err := decodeRecord(rec, v.texts)
	if v.lost = errors.Is(err, chain.ErrBlob); v.lost {
		return &chain.DamageError{Mark: rec.Mark, Why: err.Error()}
	}
	if err != nil {
		return err
	}
	if _, is := e.(*removedEvent); is {
		v.gone = rec.Number
	}
	if v.there == nil || rec.Number > v.at.Number {
		return nil
	}
	err = v.fill.add(rec)
	if errors.Is(err, errEnough) {
		if err = v.fill.put(); err == nil {
			err = v.fill.add(rec)
		}
	}
	return err
}

// compare compares the index that is there with that of the log up to the same record.
func (v *verification) compare(ctx context.Context, at chain.Mark) error {
	if v.there == nil || v.report.Gone > 0 && v.gone > at.Number {
		return nil // there is none, or it is from before a part was removed, and behind
	}
	if at.Number > 0 {
		v.fill.at = at
		if err := v.fill.put(); err != nil {
			return err
		}
	}
	var fast int
	if err := v.there.QueryRowContext(ctx, hasSearch).Scan(&fast); err != nil {
		return v.unreadable(err)
	}
	if fast > 0 {
		if err := v.own.search(); err != nil {
			return err
		}
	}
	for _, t := range []struct{ name, query string }{
		{"table", "SELECT name, type, sql FROM sqlite_master ORDER BY name"},
		{"position", "SELECT number, segment, start, hex(hash), last_key, last_seq, begins FROM position"},
		{"call", "SELECT * FROM calls ORDER BY id"},
		{"arguments of call", "SELECT * FROM arguments ORDER BY call"},
		{"message", "SELECT * FROM messages ORDER BY seq"},
		{"fence", "SELECT client, tool_call_id FROM fences ORDER BY client, id"},
	} {
		if err := v.same(ctx, t.name, t.query); err != nil {
			return err
		}
	}
	return nil
}

// same compares the rows of a query, of which the first column names one.
func (v *verification) same(ctx context.Context, what, query string) error {
	there, err := v.there.QueryContext(ctx, query)
	if err != nil {
		return v.unreadable(err)
	}
	defer there.Close()
	own, err := v.own.conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer own.Close()
	columns, err := own.Columns()
	if err != nil {
		return err
	}
	for {
		is, want, err := nextRows(there, own, len(columns))
		switch {
		case err != nil:
			return v.unreadable(err)
		case is == nil && want == nil:
			return nil
		case want == nil:
			return v.differs(what, is[0], "was added")
		case is == nil, is[0] != want[0]:
			return v.differs(what, want[0], "is missing")
		}
		for i, c := range columns {
			if is[i] != want[i] {
				return v.differs(what, want[0], "has another "+c)
			}
		}
	}
}

func (v *verification) differs(what string, key any, how string) error {
	name, _, _ := strings.Cut(fmt.Sprint(key), " (")
	return tampered("the index differs from the log: %s %s %s. Nothing is lost: remove %s, and it is made anew", what, name, how, indexName)
}

// nextRows reads the next row of each, as texts; nil after the last.
func nextRows(a, b *sql.Rows, columns int) (x, y []any, err error) {
	if x, err = nextRow(a, columns); err != nil {
		return nil, nil, err
	}
	y, err = nextRow(b, columns)
	return x, y, err
}

func nextRow(rows *sql.Rows, columns int) ([]any, error) {
	if !rows.Next() {
		return nil, rows.Err()
	}
	values, into := make([]any, columns), make([]any, columns)
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	for i, v := range values {
		values[i] = fmt.Sprintf("%v (%T)", v, v)
	}
	return values, nil
}

func (v *verification) close() {
	if v.there != nil {
		_ = v.there.Rollback() // nothing was written
	}
	if v.db != nil {
		_ = v.db.Close()
	}
	if v.own != nil {
		_ = v.own.close()
	}
}

// Accept notes the end of the journal in dir as it is: whoever says so knows why it had
// another end, for instance that a backup was restored.
func Accept(dir string) error {
	f, err := openFiles(dir)
	if err == nil {
		_, err = chain.Accept(f.options(nil))
	}
	if err == nil {
		err = removeIndex(f.indexPath()) // it may be that of what was there before
	}
	if err = errors.Join(err, f.close()); err != nil {
		return fmt.Errorf("cannot note the end of the journal: %w", err)
	}
	return nil
}
