// Package journal keeps the durable record of every message and decision.
//
// It is an append-only log of events, package chain, which several processes may share: the
// daemon, the private daemons of single calls, and commands that read. A record in it is
// never changed; each covers the one before by its hash. A table in memory, made from the
// log, decides what may follow. For queries there is an index, which says where in the log the
// calls and messages are that a query wants, and the log says what is in them. Its newest part is
// in memory; the rest is in files, each made of some records alone and never changed, so that
// whichever process makes one makes the same. All of it can be removed at any time.
//
// Texts above 64 KiB are beside the log. Its oldest parts can be removed with all that is
// recorded in them (Journal.Remove), never those of an open call.
//
// What must outlive a power cut before something happens (a decision, the intent to run it,
// the return of what ran before it was recorded) is synced to the disk. The rest, the return
// of a call with an intent among it, outlives the death of the daemon at once and the
// machine's some milliseconds later: of a call whose return a power cut takes away it is
// known that it ran and not what came of it, which is as true of its effects. So does the
// start of a call, so that after the death of the daemon alone it is known which calls have
// not started. That a return was delivered is written some milliseconds late, when no call
// waits: a return without the mark may have been delivered in any case.
//
// What several callers want to write at the same time is written together.
//
// The package decides nothing and runs nothing. An error of a write means that the record
// does not exist: the caller must not go on with what it announced.
package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/statedir"
)

// Errors of a Journal.
var (
	ErrNotFound = errors.New("not in the journal")
	ErrState    = errors.New("the call is past that state")
	ErrTampered = errors.New("the journal was changed from outside")
	ErrGone     = errors.New("the journal was deleted or replaced while toold runs; what is written to it now would be lost. Restart toold")
	ErrUnknown  = errors.New("whether the call was recorded before is unknown")
	ErrBusy     = errors.New("another process writes to the journal for long")
)

// Journal is an open journal, for concurrent use. The end of a context aborts a query, not a write.
type Journal struct {
	daemon  Identity
	dir     string
	alive   io.Closer // says for as long as it is open that daemon is alive
	files   files
	write   *recorder
	index   *index
	filling alarm // does what no one waits for
	ballast ballast

	misses  int // ids that were new; of one that has the lock of the table
	closing atomic.Bool
	hold    atomic.Uint32  // of Hold
	grown   chan struct{}  // of Grown; capacity 1
	beside  sync.WaitGroup // of what reads the index for a filter
	key     seal.Key
}

type files struct {
	log, notes chain.Dir
	path       string     // of log; "" = a copy elsewhere, without an index
	segment    int64      // how large one becomes
	chunk      uint64     // so many records has a part of the index
	hashMask   uint32     // of hasher
	last       chain.Mark // of a copy, which has no notes
}

const (
	segmentBytes = 64 << 20
	leastSegment = 1 << 20                // also the first: Bound comes later
	settleAfter  = 250 * time.Millisecond // after something was recorded, while no one waits
	lockWait     = 10 * time.Second       // another process has the lock while it writes once
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
		notes, err = chain.Directory(insideDir(dir)) // none can be made beside it
	}
	return notes, err
}

// notesDir is where the note of the end of a journal is: beside the state directory, so that
// one that is replaced as a whole is noticed, or inside, where that cannot be.
func notesDir(dir string) string {
	if _, err := os.Stat(filepath.Join(statedir.Head(dir), noteName)); err != nil && HeadInside(dir) {
		return insideDir(dir)
	}
	return statedir.Head(dir)
}

func insideDir(dir string) string { return filepath.Join(dir, "journal.head") }

// HeadInside reports whether the note of the end of the journal in dir is inside of it, and
// goes away with it.
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

// Open opens the journal in dir, made if missing, for calls of daemon: Self, except in tests.
// A damaged one is opened for reading what its index has.
func Open(ctx context.Context, dir string, daemon Identity) (*Journal, error) {
	return open(ctx, dir, daemon, openFiles)
}

func open(ctx context.Context, dir string, daemon Identity, files func(dir string) (files, error)) (*Journal, error) {
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
	if j.alive, err = statedir.Hold(j.dir, j.daemon.String()); err != nil {
		return err
	}
	if j.files, err = files(j.dir); err != nil {
		return err
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

// openLog opens the index and the log, and brings the index and the table to its end.
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
		x.drop() // the log does not have that
	}
	var damage *chain.DamageError
	if errors.As(err, &damage) {
		w.tampered = fmt.Errorf("%w: %w. Look at it with `toold audit verify`; to go on with it as it is, run `toold audit accept` and start toold again", ErrTampered, err)
		err = nil
	}
	if err != nil {
		return err
	}
	if w.log != nil && x.hash.id != w.log.ID() && x.any() {
		// Another process made the log meanwhile: its hashes are others.
		if err := errors.Join(w.log.Close(), x.close()); err != nil {
			return err
		}
		return j.openLog()
	}
	if w.log == nil {
		last := x.last()
		w.end.Store(&last)
	} else {
		x.hash.id = w.log.ID()
		w.ended()
	}
	x.mu.Lock()
	x.hold(w.end.Load().Segment)
	x.mu.Unlock()
	w.signed.CompareAndSwap(nil, &signed{*w.end.Load(), time.Now()})
	return nil
}

// prepare makes a directory that keeps others out.
func prepare(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
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
	return dir, nil
}

// WaitForLock sets how long writes wait while another process has the lock of the log; it is
// 10 s at first.
func (j *Journal) WaitForLock(most time.Duration) {
	j.write.turn <- struct{}{}
	j.write.log.WaitFor(most)
	<-j.write.turn
}

// Daemon returns the identity in whose name this Journal records calls.
func (j *Journal) Daemon() Identity { return j.daemon }

// Close waits for writes under way, writes what waits, and closes the files. No method may
// be called afterwards.
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
		_ = j.index.save() // else the next one does it
	}
	if j.write != nil && j.write.log != nil {
		errs = append(errs, j.write.log.Close())
	}
	if j.index != nil {
		errs = append(errs, j.index.close())
	}
	errs = append(errs, j.files.close())
	if j.alive != nil { // the last: what is written above is a living daemon's
		errs = append(errs, j.alive.Close())
	}
	return errors.Join(errs...)
}

// settle has the table forget what only queries need, and keeps what the index has. What cannot be
// kept is in memory, and read again from the log by the next one that opens it.
func (j *Journal) settle() {
	w := j.write
	w.known.Lock()
	w.table.forget(w.table.number)
	w.known.Unlock()
	_ = j.index.save()
}
