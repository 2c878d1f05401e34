package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// durability says when a record is on the disk. Once its transaction has committed
// it outlives the daemon in any case.
type durability int

const (
	soon   durability = iota // within about laterAfter
	synced                   // before its writer goes on
)

// laterAfter is how long a record for which nobody waits may wait for others to
// be written with it, and how long one that is soon on the disk may wait for that.
const laterAfter = 20 * time.Millisecond

// checkpointAfter is how much is written, in bytes, until it is copied from the log
// into the database. That takes milliseconds, so it is done when nobody waits and
// by a connection of its own; SQLite does it in a commit only when that does not
// happen for long (autoCheckpoint, in pages).
const (
	checkpointAfter = 4 << 20
	autoCheckpoint  = 8192
	eachTransaction = 40 << 10 // about ten pages, beside the bodies of messages
)

// writer is the one connection that writes. With several, SQLite would poll for
// the lock. Whoever has its turn commits what all the others wait for as well:
// an fsync and a commit cost the same for one record as for many.
type writer struct {
	db    *sql.DB
	turn  chan struct{} // capacity 1; full while somebody uses the fields down to stmts
	conn  *sql.Conn
	path  string               // of the database
	file  os.FileInfo          // of what was opened there
	head  *head                // of the chain, once this transaction has read it
	fresh int                  // bytes written since the last checkpoint, about
	stmts map[string]*sql.Stmt // by their text
	news  news

	// What this transaction has to seal; see seal.
	appended bool           // it recorded messages
	touched  map[Key]bool   // calls that it changed
	given    map[Key]string // hashes of the arguments that it recorded
	sealing  *note          // its seal; nil when there is nothing to seal
	sealed   struct {       // reads a call for its digest
		query   string
		columns int
	}
	tampered error // why the file head is left as it was; nil when it fits

	disk   disk
	health health

	alarms sync.WaitGroup // one while alarm runs

	mu     sync.Mutex
	queue  []*job      // not begun, in their order
	late   []*job      // those for which nobody waits
	alarm  *time.Timer // writes what nobody waits for, and syncs; nil while there is none of it
	closed bool        // there is no alarm any more
}

// job is what one caller wants in a transaction.
type job struct {
	do     func() error // may run again, after all that it did was undone
	failed func(error)  // of a job for which nobody waits
	err    error        // valid when done is closed, as is
	number int64        // that of its transaction; see disk
	done   chan struct{}
}

// unsyncedError says that a transaction was committed, and others can read it, but that
// it could not be brought to the disk.
type unsyncedError struct{ error }

func (e *unsyncedError) Unwrap() error { return e.error }

// beginError says that no transaction could begin.
type beginError struct{ error }

func (e *beginError) Unwrap() error { return e.error }

func newWriter(path string) (*writer, error) {
	file, err := os.Stat(path)
	w := &writer{turn: make(chan struct{}, 1), path: path, file: file, stmts: map[string]*sql.Stmt{}, disk: disk{turn: make(chan struct{}, 1)}}
	columns, n := sealedColumns()
	w.sealed.query, w.sealed.columns = fmt.Sprintf(querySealed, columns), n
	return w, err
}

// syncOurselves takes that over from SQLite, where there is a log to sync.
func (w *writer) syncOurselves(ctx context.Context) error {
	found, err := w.disk.open(w.path)
	if err != nil || !found {
		return err
	}
	_, err = w.conn.ExecContext(ctx, "PRAGMA synchronous = NORMAL")
	return err
}

// tx runs do in a transaction that holds the database's write lock from its
// start, and undoes all of it when do fails. The jobs of several callers may
// share a transaction; when one of them fails each gets its own, so do must be
// able to run twice. It uses the writer by row, exec and append only.
//
// When what was committed cannot be brought to the disk, the error is an
// *unsyncedError.
func (w *writer) tx(d durability, do func() error) error {
	j := &job{do: do, done: make(chan struct{})}
	w.mu.Lock()
	w.queue = append(w.queue, j)
	w.mu.Unlock()
	select {
	case <-j.done:
	case w.turn <- struct{}{}:
		w.commit(w.waiting(false))
		<-w.turn
	}
	<-j.done
	switch {
	case j.err != nil:
		return j.err
	case d == synced:
		if err := w.disk.sync(j.number); err != nil {
			w.health.wrote(err)
			return &unsyncedError{err}
		}
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remind()
	return nil
}

// later is tx for what nobody waits for: it is written laterAfter from now, or when
// somebody wants to read, in a transaction that holds up no other. failed is told when it cannot be.
func (w *writer) later(do func() error, failed func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = append(w.late, &job{do: do, failed: failed, done: make(chan struct{})})
	w.remind()
}

// remind has all that is there after laterAfter written and synced. Called with mu
// held.
func (w *writer) remind() {
	if w.alarm != nil || w.closed {
		return
	}
	w.alarms.Add(1)
	w.alarm = time.AfterFunc(laterAfter, func() {
		defer w.alarms.Done()
		w.mu.Lock()
		w.alarm = nil
		w.mu.Unlock()
		w.settle()
		_ = w.disk.sync(w.disk.committed.Load()) // who needs to know meets the same error
		w.checkpoint()
	})
}

// flush writes what waits.
func (w *writer) flush() {
	w.turn <- struct{}{}
	w.commit(w.waiting(true))
	<-w.turn
}

// checkpoint copies what was written into the database, when it has become much.
// An error is no loss: the next one copies more.
func (w *writer) checkpoint() {
	w.turn <- struct{}{}
	due := w.fresh > checkpointAfter
	if due {
		w.fresh = 0
	}
	<-w.turn
	if due {
		_, _ = w.db.Exec("PRAGMA wal_checkpoint(PASSIVE)")
	}
}

// settle writes what nobody waits for, so that a reader finds it. What has left the
// queue is being written for as long as somebody has the turn.
func (w *writer) settle() {
	w.mu.Lock()
	some := len(w.queue)+len(w.late) > 0
	w.mu.Unlock()
	if some || len(w.turn) > 0 {
		w.flush()
	}
}

// waiting takes the jobs that have not begun, or only those for which somebody waits.
// The caller has the turn.
func (w *writer) waiting(all bool) []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	jobs := w.queue
	w.queue = nil
	if all {
		jobs = append(jobs, w.late...)
		w.late = nil
	}
	return jobs
}

// commit does the jobs, together if that can be. Where no transaction can begin, for
// instance since another process has the lock, none is tried again: jobs that came
// meanwhile have waited for the same. The caller has the turn.
func (w *writer) commit(jobs []*job) {
	err := w.together(jobs)
	var locked *beginError
	alone := err != nil && len(jobs) > 1
	if errors.As(err, &locked) {
		jobs, alone = append(jobs, w.waiting(false)...), false
	}
	if len(jobs) > 0 {
		w.health.wrote(err)
	}
	for _, j := range jobs {
		if j.err = err; alone {
			j.err = w.together([]*job{j})
			w.health.wrote(j.err)
		}
		j.number = w.disk.committed.Load()
		close(j.done)
		if j.err != nil && j.failed != nil {
			j.failed(j.err)
		}
	}
}

// together does the jobs in one transaction, all of them or none. The caller has
// the turn.
func (w *writer) together(jobs []*job) error {
	if len(jobs) == 0 {
		return nil
	}
	if err := w.begin(); err != nil {
		return &beginError{err}
	}
	var err error
	for _, j := range jobs {
		if err = j.do(); err != nil {
			break // the next one could find that SQLite has rolled back by itself
		}
	}
	if err == nil {
		err = w.seal(context.Background())
	}
	if err == nil {
		if _, err = w.exec(context.Background(), "COMMIT"); err == nil {
			if w.sealing != nil {
				w.disk.sealed.Store(w.sealing)
			}
			w.disk.committed.Add(1)
			w.news.passOn()
			return nil
		}
	}
	// It fails when SQLite has rolled back by itself, for instance on a full disk;
	// that is no second error.
	_, _ = w.exec(context.Background(), "ROLLBACK")
	return err
}

// begin starts a transaction.
func (w *writer) begin() error {
	if err := w.present(); err != nil {
		return err
	}
	w.head, w.appended, w.sealing, w.news.fresh = nil, false, nil, nil
	w.touched, w.given = map[Key]bool{}, map[Key]string{}
	w.fresh += eachTransaction
	_, err := w.exec(context.Background(), "BEGIN IMMEDIATE")
	return err
}

// present returns an error unless the file that was opened is still the one that the
// next daemon will find. SQLite would go on writing to a deleted file and say nothing.
func (w *writer) present() error {
	err := same(w.path, w.file)
	if err == nil && w.disk.opened != nil {
		err = same(w.path+"-wal", w.disk.opened)
	}
	return err
}

// exec runs a statement. The caller is in a transaction.
func (w *writer) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := w.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args...)
}

// row runs a query for one row. The caller is in a transaction.
func (w *writer) row(ctx context.Context, query string, args ...any) scanner {
	s, err := w.prepare(ctx, query)
	if err != nil {
		return failed{err}
	}
	return s.QueryRowContext(ctx, args...)
}

// prepare prepares each text once. The caller is in a transaction.
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

// close writes and syncs what waits and closes the connection.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	if w.alarm != nil && w.alarm.Stop() {
		w.alarms.Done()
	}
	w.mu.Unlock()
	w.turn <- struct{}{}
	w.commit(w.waiting(true))
	errs := []error{w.disk.sync(w.disk.committed.Load())}
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	<-w.turn
	w.alarms.Wait()
	return errors.Join(append(errs, w.disk.close())...)
}

// scanner is a row that can be read into variables.
type scanner interface{ Scan(dest ...any) error }

// failed is the row of a query that could not be run.
type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }
