package journal

import (
	"context"
	"database/sql"
	_ "embed" // the schema
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"

	"modernc.org/sqlite" // also the database/sql driver "sqlite"

	"github.com/toold/toold/internal/journal/chain"
)

//go:embed index.sql
var indexSchema string

// indexSearch is what makes queries fast.
//
//go:embed index_search.sql
var indexSearch string

// lastSearch is the last that indexSearch makes; hasSearch looks for it.
const (
	lastSearch = "messages_by_status"
	hasSearch  = "SELECT count(*) FROM sqlite_master WHERE name = '" + lastSearch + "'"
)

// indexVersion is that of indexSchema. An index of another version is made anew.
const indexVersion = 2

var errUseless = errors.New("it is of another version")

// index is a SQLite database of what the log says, for queries. All of it is made from the
// log, record after record, so it is right up to its position, whoever has filled it.
type index struct {
	read  *sql.DB
	known *sql.Conn // one of read, for lookups that must work when no file can be opened
	named *sql.Stmt // findCall on known

	mu    sync.Mutex // of what writes
	db    *sql.DB    // of one connection
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // by their text
	full  uint64               // number of a record that it certainly has
	fast  bool                 // whether indexSearch was made
	texts texts
}

// openIndex opens the index in a file, and makes it anew when it is missing or useless.
func openIndex(ctx context.Context, path string) (*index, error) {
	x, err := connect(ctx, path)
	if useless(err) {
		return makeIndex(ctx, path)
	}
	return x, err
}

func makeIndex(ctx context.Context, path string) (*index, error) {
	if err := removeIndex(path); err != nil {
		return nil, fmt.Errorf("cannot make the index of the journal anew: %w", err)
	}
	return connect(ctx, path)
}

// removeIndex removes an index. Processes that have it open go on with it.
func removeIndex(path string) error {
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// useless reports whether an error says that a file is no index of this version.
func useless(err error) bool {
	var e *sqlite.Error
	const corrupt, noDatabase = 11, 26
	if errors.As(err, &e) {
		return e.Code()&0xff == corrupt || e.Code()&0xff == noDatabase
	}
	return errors.Is(err, errUseless)
}

// isSQLite reports whether SQLite itself has refused something, other than for a while.
func isSQLite(err error) bool {
	var e *sqlite.Error
	const busy = 5
	return errors.As(err, &e) && e.Code()&0xff != busy
}

func connect(ctx context.Context, path string) (*index, error) {
	x := &index{stmts: map[string]*sql.Stmt{}}
	if err := x.connect(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open the index of the journal: %w", err), x.close())
	}
	return x, nil
}

func (x *index) connect(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // side files get the same mode
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := x.writer(ctx, address(path, "_pragma=auto_vacuum(full)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)")); err != nil {
		return err
	}
	if x.read, err = sql.Open("sqlite", address(path, "_pragma=query_only(1)")); err != nil {
		return err
	}
	x.read.SetMaxOpenConns(5)
	x.read.SetMaxIdleConns(5)
	if x.known, err = x.read.Conn(ctx); err != nil {
		return err
	}
	x.named, err = x.known.PrepareContext(ctx, findCall)
	return err
}

// search makes what makes queries fast, unless it is there. The caller is in a transaction.
func (x *index) search() error {
	var is int
	err := x.row(hasSearch).Scan(&is)
	if err == nil && is == 0 {
		_, err = x.conn.ExecContext(context.Background(), indexSearch)
	}
	x.fast = err == nil
	return err
}

// writer opens what writes, and makes the tables.
func (x *index) writer(ctx context.Context, address string) (err error) {
	if x.db, err = sql.Open("sqlite", address); err != nil {
		return err
	}
	x.db.SetMaxOpenConns(1)
	if x.conn, err = x.db.Conn(ctx); err != nil {
		return err
	}
	return x.tx(func() error {
		var have, tables int
		if err := x.row("SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version").Scan(&have, &tables); err != nil {
			return err
		}
		switch {
		case have == indexVersion:
			return nil
		case have != 0 || tables != 0:
			return errUseless
		}
		_, err := x.conn.ExecContext(ctx, fmt.Sprintf("%s; PRAGMA user_version = %d", indexSchema, indexVersion))
		return err
	})
}

// address is the driver's name for the file. Another process may have the lock for as long
// as it writes, hence the time to wait (milliseconds).
func address(path, options string) string {
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw&_pragma=busy_timeout(5000)&" + options}
	return u.String()
}

// position is the last record that the index has; zero for none.
func (x *index) position(ctx context.Context) (chain.Mark, error) {
	return scanPosition(x.known.QueryRowContext(ctx, queryPosition))
}

// begins is the segment before which all were removed, as far as the index knows.
func (x *index) begins(ctx context.Context) (segment uint32, err error) {
	err = x.known.QueryRowContext(ctx, "SELECT coalesce(max(begins), 0) FROM position").Scan(&segment)
	return segment, err
}

const queryPosition = "SELECT number, segment, start, hash FROM position"

func scanPosition(row scanner) (m chain.Mark, err error) {
	var hash []byte
	err = row.Scan(&m.Number, &m.Segment, &m.Offset, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return chain.Mark{}, nil
	}
	copy(m.Hash[:], hash)
	return m, err
}

func (x *index) find(ctx context.Context, c *Call) (Record, error) {
	return scanRecord(x.named.QueryRowContext(ctx, c.Client, c.AgentID, c.ID))
}

func (x *index) call(k Key) (Record, error) {
	return scanRecord(x.known.QueryRowContext(context.Background(), findKey, k))
}

func (x *index) uses(ctx context.Context, client, callID string) (bool, error) {
	_, err := scanRecord(x.known.QueryRowContext(ctx, findNamed, client, callID))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// restore has a table know what the index has: the calls that are open, the fences, and the
// last numbers. It returns the last record that is in all that.
func (x *index) restore(ctx context.Context, t *table) (at chain.Mark, err error) {
	tx, err := x.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // all as of one position
	if err != nil {
		return at, err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	if at, err = scanPosition(tx.QueryRowContext(ctx, queryPosition)); err != nil {
		return at, err
	}
	t.number = at.Number
	if err := tx.QueryRowContext(ctx, queryLast).Scan(&t.lastKey, &t.lastSeq, &t.begins); err != nil {
		return at, err
	}
	rows, err := tx.QueryContext(ctx, listOpen)
	if err != nil {
		return at, err
	}
	list, err := scanRecords(rows)
	if err != nil {
		return at, err
	}
	for i := range list {
		t.restore(&list[i])
	}
	if rows, err = tx.QueryContext(ctx, queryFences); err != nil {
		return at, err
	}
	return at, scanFences(rows, t)
}

// oldestOpen is the segment of the oldest open call; 0 without one.
func (x *index) oldestOpen(ctx context.Context) (segment uint32, err error) {
	err = x.known.QueryRowContext(ctx, "SELECT coalesce(min(segment), 0) FROM calls WHERE return_seq IS NULL").Scan(&segment)
	return segment, err
}

const queryLast = "SELECT coalesce(max(last_key), 0), coalesce(max(last_seq), 0), coalesce(max(begins), 0) FROM position"

const queryFences = "SELECT client, tool_call_id FROM fences ORDER BY id"

// scanFences reads the fenced ids into a table, and closes them.
func scanFences(rows *sql.Rows, t *table) error {
	defer rows.Close()
	for rows.Next() {
		var client, id string
		if err := rows.Scan(&client, &id); err != nil {
			return err
		}
		t.fences[client] = append(t.fences[client], id)
	}
	return rows.Err()
}

// tx runs do in a transaction that has the lock of the database from its start. Statements in
// it are not aborted: that would cost a goroutine each.
func (x *index) tx(do func() error) error {
	_, err := x.exec("BEGIN IMMEDIATE")
	if err != nil {
		return err
	}
	if err = do(); err == nil {
		_, err = x.exec("COMMIT")
	}
	if err != nil {
		// It fails when SQLite has rolled back by itself, for instance on a full disk;
		// that is no second error.
		_, _ = x.exec("ROLLBACK")
	}
	return err
}

// exec runs a statement. The caller is in a transaction.
func (x *index) exec(query string, args ...any) (sql.Result, error) {
	s, err := x.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.Background(), args...)
}

// row runs a query for one row. The caller is in a transaction.
func (x *index) row(query string, args ...any) scanner {
	s, err := x.prepare(query)
	if err != nil {
		return failed{err}
	}
	return s.QueryRowContext(context.Background(), args...)
}

// prepare prepares each text once.
func (x *index) prepare(query string) (*sql.Stmt, error) {
	if s, ok := x.stmts[query]; ok {
		return s, nil
	}
	s, err := x.conn.PrepareContext(context.Background(), query)
	if err == nil {
		x.stmts[query] = s
	}
	return s, err
}

func (x *index) close() error {
	var errs []error
	for _, s := range x.stmts {
		errs = append(errs, s.Close())
	}
	if x.named != nil {
		errs = append(errs, x.named.Close())
	}
	for _, c := range []*sql.Conn{x.known, x.conn} {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	for _, db := range []*sql.DB{x.read, x.db} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

type scanner interface{ Scan(dest ...any) error }

// failed is the row of a query that could not be run.
type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }
