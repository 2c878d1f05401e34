package journal

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"sync"
)

// durability says when a transaction is on the disk.
type durability string

const (
	synced durability = "PRAGMA synchronous = FULL"   // when it has committed
	lazy   durability = "PRAGMA synchronous = NORMAL" // with the next synced one, or at a checkpoint
)

// writer is the one connection that writes. With several, SQLite would poll for
// the lock; the mutex hands it over at once.
type writer struct {
	mu    sync.Mutex
	conn  *sql.Conn
	path  string               // of the database
	file  os.FileInfo          // of what was opened there
	set   durability           // of the connection
	stmts map[string]*sql.Stmt // by their text
}

// tx runs fn in a transaction that holds the database's write lock from its
// start, and undoes all of it when fn fails. The mutex is held meanwhile, also
// over the build function of Finish: the sequence number it is given is only
// certain inside the transaction.
func (w *writer) tx(ctx context.Context, d durability, fn func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.present(); err != nil {
		return err
	}
	if w.set != d {
		if _, err := w.exec(ctx, string(d)); err != nil {
			return err
		}
		w.set = d
	}
	if _, err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := fn()
	if err == nil {
		if _, err = w.exec(ctx, "COMMIT"); err == nil {
			return nil
		}
	}
	// Even if ctx has ended. It fails when SQLite has rolled back by itself,
	// for instance on a full disk; that is no second error.
	_, _ = w.exec(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}

// present tells whether the file that was opened is still the one that the next
// daemon will find. SQLite would go on writing to a deleted file and say nothing.
func (w *writer) present() error {
	now, err := os.Stat(w.path)
	if err != nil || !os.SameFile(now, w.file) {
		return ErrGone
	}
	return nil
}

// exec runs a statement and returns the number of rows it changed. The caller
// holds mu.
func (w *writer) exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	s, err := w.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// row runs a query for one row. The caller holds mu.
func (w *writer) row(ctx context.Context, query string, args ...any) scanner {
	s, err := w.prepare(ctx, query)
	if err != nil {
		return failed{err}
	}
	return s.QueryRowContext(ctx, args...)
}

// prepare prepares each text once. The caller holds mu.
func (w *writer) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := w.stmts[query]; ok {
		return s, nil
	}
	s, err := w.conn.PrepareContext(ctx, query)
	if err == nil {
		w.stmts[query] = s
	}
	return s, err
}

func (w *writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	return errors.Join(errs...)
}

// scanner is a row that can be read into variables.
type scanner interface{ Scan(dest ...any) error }

// failed is the row of a query that could not be run.
type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }
