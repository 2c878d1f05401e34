// Package journal stores the durable record of calls, decisions and messages.
//
// It is an append-only log of events (package chain) that several processes may share. A table in memory, built from
// the log, determines which event may follow. An index, derived from the log and removable at any time, locates calls
// and messages for queries. Texts above 64 KiB are blobs outside the log. The oldest segments can be removed
// (Journal.Remove), but never those of an open call.
//
// Decisions, intents, and returns recorded together with their call are synced before the method returns. Other
// records survive the daemon at once, and the machine some milliseconds later: if a power cut loses a return, it is
// still known that the call ran. Starts survive the daemon, so it is known which calls have not started. Deliveries
// are written some milliseconds late.
//
// Concurrent writes share one write and sync. After an error the caller must not proceed, although the record may
// exist, for instance if only the sync failed.
package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/statedir"
)

// Errors of a Journal.
var (
	ErrNotFound = errors.New("not in the journal")
	ErrState    = errors.New("the call is past that state")
	ErrTampered = errors.New("the journal was changed from outside")
	ErrUnknown  = errors.New("whether the call was recorded before is unknown")
	ErrBusy     = errors.New("another process writes to the journal for long")
)

// Journal is an open journal. It is safe for concurrent use. A context aborts queries, not writes.
type Journal struct {
	daemon  string // from Self
	dir     string
	alive   io.Closer // marks daemon as alive until closed
	files   files
	write   *recorder
	index   *index
	filling alarm
	ballast ballast

	opened  opened
	misses  int // failed lookups of ids; guarded by the table's lock
	closing atomic.Bool
	hold    atomic.Uint32  // of Hold
	grown   chan struct{}  // of Grown; capacity 1
	beside  sync.WaitGroup // goroutines that read the index for a filter
	key     seal.Key
}

// opened is when a Journal was opened, by the monotonic clock, and the segment that grew then.
type opened struct {
	at      time.Time
	segment uint32
}

type files struct {
	log, notes chain.Dir
	path       string // of the log; "" = a copy without index
	segment    int64  // bytes of a segment
	chunk      uint64 // records of a chunk
	hashMask   uint32
	last       chain.Mark // end of a copy that has no note
}

const (
	segmentBytes = 64 << 20
	leastSegment = 1 << 20                // also of the first segment, which begins before Bound is called
	settleAfter  = 250 * time.Millisecond // delay after the last record
	lockWait     = 10 * time.Second       // another process holds the lock only during one write
	noteName     = "head"
)

func openFiles(dir string) (f files, err error) {
	if _, err := os.Stat(oldPath(dir)); err == nil {
		return f, errors.New("journal.db there is that of an older toold: run `toold journal import`")
	}
	f = files{path: logDir(dir), segment: leastSegment, chunk: chunkRecords}
	if f.log, err = chain.Directory(f.path); err != nil {
		return f, err
	}
	f.notes, err = openNotes(dir)
	return f, err
}

func openNotes(dir string) (chain.Dir, error) {
	notes, err := chain.Directory(notesDir(dir))
	if err != nil {
		return chain.Directory(insideDir(dir)) // the parent may not be writable
	}
	return notes, nil
}

// notesDir returns the directory of the note. It is outside the state directory, so that replacing that directory is
// noticed, or inside if it cannot be created outside.
func notesDir(dir string) string {
	if _, err := os.Stat(filepath.Join(statedir.Head(dir), noteName)); err != nil && HeadInside(dir) {
		return insideDir(dir)
	}
	return statedir.Head(dir)
}

func insideDir(dir string) string { return filepath.Join(dir, "journal.head") }

// HeadInside reports whether the note of the journal in dir is inside dir, and would be lost with it.
func HeadInside(dir string) bool {
	_, err := os.Stat(filepath.Join(insideDir(dir), noteName))
	return err == nil
}

func logDir(dir string) string { return filepath.Join(dir, "journal") }

func (f *files) options(seen func(chain.Record) error) chain.Options {
	return chain.Options{Dir: f.log, Notes: f.notes, Note: noteName, Noted: f.last, SegmentBytes: f.segment, Wait: lockWait, Seen: seen}
}

func (f *files) close() error {
	var errs []error
	for _, d := range []chain.Dir{f.log, f.notes} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}

// Open opens the journal in dir, and creates it if it is missing. daemon owns the calls that it records; it is Self,
// except in tests. A damaged journal is opened for reading the indexed records.
func Open(ctx context.Context, dir string, daemon string) (*Journal, error) {
	return open(ctx, dir, daemon, openFiles)
}

func open(ctx context.Context, dir string, daemon string, files func(dir string) (files, error)) (*Journal, error) {
	j := &Journal{daemon: daemon, grown: make(chan struct{}, 1)}
	if err := j.open(ctx, dir, files); err != nil {
		return nil, fmt.Errorf("cannot open the journal in %q: %w", dir, errors.Join(err, j.Close()))
	}
	return j, nil
}

func (j *Journal) open(ctx context.Context, dir string, files func(string) (files, error)) (err error) {
	if j.dir, err = prepare(dir); err != nil {
		return err
	}
	if j.alive, err = statedir.Hold(j.dir, j.daemon); err != nil {
		return err
	}
	if j.files, err = files(j.dir); err != nil {
		return err
	}
	if err := owned(notesDir(j.dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // another user may have made it, beside a directory in /tmp
	}
	j.ballast.path = filepath.Join(j.files.path, ballastName)
	err = statedir.Alone(ctx, j.dir, "index", func() (err error) {
		j.key, err = seal.Open(keyPath(j.dir))
		return err
	})
	if err != nil {
		return err
	}
	j.write = newRecorder()
	if err := j.openLog(); err != nil {
		return err
	}
	j.ballast.open()
	j.filling.after, j.filling.do = settleAfter, func() {
		j.settle()
		j.checkpointWhenDue()
		select {
		case j.grown <- struct{}{}:
		default:
		}
	}
	j.write.changed = j.filling.set
	return nil
}

// openLog opens the index and the log, and updates index and table from the log.
func (j *Journal) openLog() error {
	w := j.write
	w.texts = texts{dir: j.files.log}
	x, err := openIndex(&j.files)
	if err != nil {
		return err
	}
	j.index, w.index = x, x
	o := j.files.options(w.see)
	o.Synced = w.measure
	for {
		w.table = newTable()
		w.table.load = x.call
		if o.From, err = x.restore(w.table); err != nil && x.any() {
			x.drop()
			continue
		}
		if err == nil {
			o.Begins = uint32(w.table.begins)
			w.last.Store(w.table.lastSeq)
			w.log, err = chain.Open(o)
		}
		if !errors.Is(err, chain.ErrNoMark) || !x.any() {
			break
		}
		x.drop() // it indexes records that the log lacks
	}
	if _, is := errors.AsType[*chain.DamageError](err); is {
		w.tampered = fmt.Errorf("%w: %w. Look at it with `toold audit verify`; to go on with what of it is intact, run `toold audit accept` and start toold again", ErrTampered, err)
		err = nil
	}
	if err != nil {
		return err
	}
	if w.log != nil && x.hash.id != w.log.ID() && x.any() {
		// Another process created the log meanwhile, so its hashes differ.
		if err := errors.Join(w.log.Close(), x.close()); err != nil {
			return err
		}
		return j.openLog()
	}
	if w.log != nil {
		x.hash.id = w.log.ID()
	}
	end := w.end()
	j.opened = opened{time.Now(), end.Segment}
	x.mu.Lock()
	x.openNewest(end.Segment)
	x.mu.Unlock()
	w.signed.CompareAndSwap(nil, &signed{end, time.Now()})
	return nil
}

// prepare creates a directory that only this user may change.
func prepare(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, owned(dir)
}

// owned returns an error if other users own a directory or may write to it: they could replace its files.
func owned(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user with the id %d, and toold runs as %d; run it as that user, use another directory (--state-dir), or run: chown -R %[3]d %[4]s", dir, stat.Uid, os.Geteuid(), display.Operand(dir))
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("other users may write to %s (mode %v); use another directory (--state-dir), or run: chmod go-w %s", dir, mode, display.Operand(dir))
	}
	return nil
}

// WaitForLock sets how long writes wait for another process (initially 10 s).
func (j *Journal) WaitForLock(most time.Duration) {
	j.write.turn <- struct{}{}
	j.write.log.WaitFor(most)
	<-j.write.turn
}

// Daemon returns the name of the process that owns the calls recorded here.
func (j *Journal) Daemon() string { return j.daemon }

// Close completes pending writes and closes the files. No method may be called afterwards.
func (j *Journal) Close() error {
	var errs []error
	j.closing.Store(true)
	j.beside.Wait()
	if j.write != nil && j.write.table != nil {
		j.write.alarm.close()
		j.write.flush()
		j.filling.close()
		if j.write.log != nil {
			j.WaitForLock(lookFor)
		}
		j.CheckpointRest()
		_ = j.index.save() // otherwise the next process saves it
	}
	if j.write != nil && j.write.log != nil {
		errs = append(errs, j.write.log.Close())
	}
	if j.index != nil {
		errs = append(errs, j.index.close())
	}
	errs = append(errs, j.files.close())
	if j.alive != nil { // last: the daemon writes until here
		errs = append(errs, j.alive.Close())
	}
	return errors.Join(errs...)
}

// settle saves the index, and drops from the table the ended calls that have no records since the last settle. What
// cannot be saved is rebuilt from the log.
func (j *Journal) settle() {
	w := j.write
	w.known.Lock()
	w.table.forget(w.settled)
	w.settled = w.table.number
	w.known.Unlock()
	_ = j.index.save()
}
