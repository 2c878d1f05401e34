// Package journal keeps the durable record of every message and decision.
//
// It is one SQLite file, journal.db, which several processes may share: the daemon,
// the private daemons of single calls, and commands that read. A call's
// row moves through its states and never back; a message's row is never
// changed, and a hash chain shows if it was. What must outlive a power cut
// before something happens (a decision, the intent to run it, the return of what
// ran before it was recorded) is synced to the disk. The rest, the return of a call
// with an intent among it, outlives the death of the daemon at once and the
// machine's some milliseconds later: of a call whose return a power cut takes away it
// is known that it ran and not what came of it, which is as true of its effects. Two
// things are written some milliseconds late, when nobody waits: the process of a
// call and that its return was delivered. The process ends with its daemon, and a
// return without the mark may have been delivered in any case.
//
// What several callers want to write at the same time is committed together.
//
// The package decides nothing and runs nothing. An error of a write means that
// the record does not exist: the caller must not go on with what it announced.
package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite" // also the database/sql driver "sqlite"

	"github.com/toold/toold/internal/statedir"
)

// Errors of a Journal.
var (
	ErrNotFound = errors.New("not in the journal")
	ErrState    = errors.New("the call is past that state")
	ErrTampered = errors.New("the journal was changed from outside")
	ErrGone     = errors.New("journal.db was deleted or replaced while toold runs; what is written to it now would be lost. Restart toold")
	ErrUnknown  = errors.New("whether the call was recorded before is unknown")
)

// Journal is an open journal. Its methods may be called at the same time.
//
// A context given to a method that writes aborts the write when it ends; give
// one that outlives the call (context.WithoutCancel) where the record must be
// made in any case.
type Journal struct {
	daemon Identity
	dir    string
	alive  io.Closer // says for as long as it is open that daemon is alive
	read   *sql.DB
	known  *sql.Conn // one of read, which stays on the file that was opened first; see recorded
	db     *sql.DB   // of the one connection in write, and of another for checkpoints
	write  *writer
}

// Open opens the journal in dir and makes both if they are missing. daemon is
// the process in whose name calls are recorded: Self, except in tests. The
// caller closes the journal.
func Open(ctx context.Context, dir string, daemon Identity) (*Journal, error) {
	again := time.NewTicker(openAgain)
	defer again.Stop()
	for begun := time.Now(); ; {
		j, err := open(ctx, dir, daemon)
		if err == nil {
			return j, nil
		}
		if !busy(err) || time.Since(begun) > openWithin {
			return nil, fmt.Errorf("cannot open the journal in %q: %w", dir, err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("cannot open the journal in %q: %w", dir, context.Cause(ctx))
		}
	}
}

// Daemons that start or stop at the same time meet locks for which SQLite does not
// wait: it would not be sure that they are ever released.
const (
	openAgain  = 5 * time.Millisecond
	openWithin = 10 * time.Second
)

func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqliteBusy
}

const sqliteBusy = 5 // SQLITE_BUSY; its kinds are in the higher bits

func open(ctx context.Context, dir string, daemon Identity) (j *Journal, err error) {
	path, err := prepare(dir)
	if err != nil {
		return nil, err
	}
	j = &Journal{daemon: daemon, dir: filepath.Dir(path)}
	if err = j.openFiles(ctx, path); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// openFiles opens all that Close closes.
func (j *Journal) openFiles(ctx context.Context, path string) (err error) {
	if j.alive, err = statedir.Hold(j.dir, j.daemon.String()); err != nil {
		return err
	}
	if j.write, err = newWriter(path); err != nil {
		return err
	}
	if j.db, err = sql.Open("sqlite", address(path, fmt.Sprintf("_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(%d)", autoCheckpoint))); err != nil {
		return err
	}
	j.write.db = j.db
	if j.read, err = sql.Open("sqlite", address(path, "_pragma=query_only(1)")); err != nil {
		return err
	}
	j.read.SetMaxOpenConns(5)
	if j.write.conn, err = j.db.Conn(ctx); err != nil {
		return err
	}
	if err = j.write.tx(synced, func() error { return j.write.migrate(ctx) }); err != nil {
		return err
	}
	if j.known, err = j.read.Conn(ctx); err != nil {
		return err
	}
	// SQLite opens the file when it reads first, not before.
	if err = j.known.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM calls LIMIT 1)").Scan(new(int)); err != nil {
		return err
	}
	if _, err = j.known.ExecContext(ctx, "PRAGMA busy_timeout = 2000"); err != nil {
		return err
	}
	if err = errors.Join(j.write.openHead(ctx), j.findLast(ctx)); err != nil {
		return err
	}
	return j.write.syncOurselves(ctx)
}

// prepare makes the directory and the file with modes that keep others out.
// SQLite gives its own side files the mode of the database.
func prepare(dir string) (path string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if info.Mode().Perm()&0o002 != 0 {
		return "", errors.New("everybody may write to this directory; use another one or run chmod 700 on it")
	}
	path = filepath.Join(dir, "journal.db")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	return path, errors.Join(f.Chmod(0o600), f.Close())
}

// address is the driver's name for the file. Another process may hold the lock
// for as long as it writes, hence the time to wait (milliseconds). Without the file
// nothing is opened: an empty one in its place would know no call.
func address(path, options string) string {
	u := url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw&_pragma=busy_timeout(10000)&" + options}
	return u.String()
}

// WaitForLock sets how long writes wait while another process has the lock of the
// database; it is 10 s at first.
func (j *Journal) WaitForLock(ctx context.Context, most time.Duration) error {
	j.write.turn <- struct{}{}
	defer func() { <-j.write.turn }()
	_, err := j.write.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", most.Milliseconds()))
	return err
}

// Daemon returns the identity in whose name this Journal records calls.
func (j *Journal) Daemon() Identity { return j.daemon }

// Close waits for writes under way and closes the files. No method may be
// called afterwards.
func (j *Journal) Close() error {
	var errs []error
	if j.known != nil {
		errs = append(errs, j.known.Close())
	}
	if j.read != nil {
		errs = append(errs, j.read.Close())
	}
	if j.write != nil {
		errs = append(errs, j.write.close())
	}
	if j.db != nil {
		errs = append(errs, j.db.Close())
	}
	if j.alive != nil { // the last: what is written above is a living daemon's
		errs = append(errs, j.alive.Close())
	}
	return errors.Join(errs...)
}
