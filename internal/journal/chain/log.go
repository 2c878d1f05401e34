// Package chain is an append-only log in segment files. Each record contains the hash of the previous one.
//
// Several processes may write one log. A writer locks the directory, reads the records that others have appended, and
// appends its own with one write (Log.Update). Log.Sync makes the records of all writers durable. Every later Open
// finds the synced records, or fails.
//
// A note in another directory names the last synced record. Open refuses a log that is shorter than its note or
// differs there. It cuts off incomplete data after the note and records the cut. Zeros may follow the last record
// (Log.Extend): the log ends where only zeros follow.
//
// Blobs are files outside the log for large texts, named by their hashes. The oldest segments can be removed with
// their blobs; a record then says where the log may begin.
//
// The package does not interpret bodies and does not retry failures.
package chain

import (
	"crypto/rand"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Errors of a Log.
var (
	ErrGone   = errors.New("the journal was deleted or replaced while toold runs; what is written to it now would be lost. Restart toold")
	ErrUnsure = errors.New("whether it was recorded is not known")
	ErrNoMark = errors.New("the log has no such record")
)

// DamageError says that a log lost records or was changed.
type DamageError struct {
	Mark Mark // of the first bad record
	Why  string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("the log is damaged: record number %d (%s, byte %d): %s", e.Mark.Number, segmentName(max(e.Mark.Segment, 1)), e.Mark.Offset, e.Why)
}

// Options configure a Log.
type Options struct {
	Dir   Dir
	Notes Dir    // directory of the note; nil, for Verify only: use Noted
	Note  string // name of its file
	Noted Mark
	// SegmentBytes is the size at which the next segment begins, fixed when a segment is created.
	SegmentBytes int64
	Wait         time.Duration // for the lock
	// From is a record that the caller has seen: Open reads only later ones. The error is ErrNoMark if the log does
	// not have it.
	From Mark
	// Begins is the first segment that the log must have if From is set; 0 means 1. Open returns ErrNoMark if it is
	// missing.
	Begins uint32
	// Seen receives in order each record that this Log did not append. An error of Seen ends reading.
	Seen func(Record) error
	// Own receives the log's own records during Verify; may be nil.
	Own func(Record)
	// Synced receives the duration and result of each sync; may be nil. It must not block.
	Synced func(took time.Duration, err error)
}

// Log is an open log. Update must not run concurrently with Update or Close; Sync may.
type Log struct {
	opt   Options
	id    ID
	file  File // current segment
	limit int64
	last  Mark
	end   int64  // offset after last
	text  []byte // buffer for the next batch
	disk  disk

	extended bool         // Extend has written zeros
	unready  uint32       // segment that Extend could not extend
	next     [bodyAt]byte // buffer of readOn
}

// Open opens a log, creates it if it is missing, and passes its records to Seen. The error is a *DamageError if a
// noted record is missing.
func Open(o Options) (l *Log, err error) {
	unlock, err := o.Dir.Lock(o.Wait)
	if err != nil {
		return nil, err
	}
	defer unlock()
	l = &Log{opt: o}
	l.disk.turn, l.disk.measure = make(chan struct{}, 1), o.Synced
	if err = l.open(); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

func (l *Log) open() error {
	list, err := segments(l.opt.Dir)
	if err != nil {
		return err
	}
	if l.disk.note, err = openNote(l.opt, len(list) == 0); err != nil {
		return err
	}
	noted, err := l.disk.note.read(false)
	if err != nil {
		return err
	}
	w := walk{dir: l.opt.Dir, noted: noted, seen: l.opt.Seen}
	if err := w.ends(list); err != nil {
		return err
	}
	switch {
	case l.opt.From == (Mark{}):
		err = w.all(list)
	case len(list) > 0 && list[0] > max(1, l.opt.Begins):
		err = ErrNoMark
	default:
		err = w.from(list, l.opt.From)
	}
	if err != nil {
		w.close()
		return err
	}
	if w.file != nil {
		l.id, l.limit = w.header.id, w.header.limit
		l.adopt(w.file, w.last, w.end)
		if readOnly(w.file) { // data after the last record remains
			return nil
		}
		err = rewrite(w.file, noted, w.last.Segment, w.end)
		if w.size > w.end && err == nil {
			err = l.cutOff(w.size)
		}
	} else {
		_, _ = rand.Read(l.id[:]) // never fails
		err = l.begin(1)
	}
	if err != nil {
		return err
	}
	if err = l.opt.Dir.Sync(); err != nil { // the process that created a segment may have died before syncing
		return err
	}
	return l.repair()
}

// repair rewrites the note if a power cut has damaged one of its slots.
func (l *Log) repair() error {
	_, err := l.disk.note.read(true)
	var torn *DamageError
	if !errors.As(err, &torn) {
		return err
	}
	if err := l.Sync(l.last.Number); err != nil {
		return err
	}
	return l.disk.note.settle(l.last)
}

// ID returns the random identifier of the log.
func (l *Log) ID() ID { return l.id }

// Last returns the last record. It may be called at any time.
func (l *Log) Last() Mark { return *l.disk.written.Load() }

// Update reads what others have appended and then calls do, which appends records. They are written together or, after
// an error, not at all. After ErrUnsure it is unknown whether they were written, and they may reach Seen later.
func (l *Log) Update(do func(*Batch) error) error {
	return locked(l.opt.Dir, l.opt.Wait, func() error { return l.update(do) })
}

func locked(dir Dir, wait time.Duration, do func() error) error {
	unlock, err := dir.Lock(wait)
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

func (l *Log) update(do func(*Batch) error) error {
	if err := l.catchUp(); err != nil {
		return err
	}
	if readOnly(l.file) {
		return fmt.Errorf("cannot write to the log: %w", syscall.EROFS)
	}
	if l.end >= l.limit {
		if err := l.rotate(); err != nil {
			return fmt.Errorf("cannot begin a segment of the log: %w", err)
		}
	}
	b := l.batch()
	if err := do(&b); err != nil || len(b.text) == 0 {
		return err
	}
	return l.write(&b)
}

func (l *Log) batch() Batch {
	return Batch{dir: l.opt.Dir, text: l.text[:0], last: l.last, end: l.end, now: time.Unix(0, time.Now().UnixNano()).UTC()}
}

func (l *Log) write(b *Batch) error {
	if _, err := l.file.WriteAt(b.text, l.end); err != nil {
		if cut := l.file.Truncate(l.end); cut != nil {
			return fmt.Errorf("cannot write to the log: %w; %w: %w", err, ErrUnsure, cut)
		}
		return fmt.Errorf("cannot write to the log: %w", err)
	}
	if l.last, l.end = b.last, b.end; cap(b.text) <= keptText {
		l.text = b.text
	}
	l.disk.written.Store(&b.last)
	return nil
}

const keptText = 256 << 10

// Batch collects the records of one Update.
type Batch struct {
	dir  Dir
	text []byte
	last Mark
	end  int64
	now  time.Time

	beside int64 // bytes of blobs
}

// Bytes returns the size of the batch, including its blobs.
func (b *Batch) Bytes() int64 { return int64(len(b.text)) + b.beside }

// Time returns the time that the next records get.
func (b *Batch) Time() time.Time { return b.now }

// Last returns the record that the next one follows.
func (b *Batch) Last() Mark { return b.last }

// SetTime sets the time of the following records, for records first made elsewhere.
func (b *Batch) SetTime(at time.Time) { b.now = at }

// Append adds a record. kind must not be one of the log's own (KindSegment, KindRemoved, KindCut).
func (b *Batch) Append(kind byte, body []byte) (Mark, error) {
	if len(body) > MaxBody {
		return Mark{}, fmt.Errorf("a record of %d bytes is too large for the log: at most %d", len(body), MaxBody)
	}
	m := Mark{Number: b.last.Number + 1, Segment: b.last.Segment, Offset: b.end}
	begin := len(b.text)
	b.text, m.Hash = appendRecord(b.text, b.last, kind, b.now, body)
	b.last, b.end = m, b.end+int64(len(b.text)-begin)
	return m, nil
}

// CatchUp passes to Seen the records that others have appended, or returns ErrBusy after wait. It must not run
// concurrently with Update.
func (l *Log) CatchUp(wait time.Duration) error {
	return locked(l.opt.Dir, wait, l.catchUp)
}

// WaitFor sets how long Update waits for the lock. It must not run concurrently with Update.
func (l *Log) WaitFor(most time.Duration) { l.opt.Wait = most }

// Begin sets the size of later segments. It must not run concurrently with Update.
func (l *Log) Begin(segmentBytes int64) { l.opt.SegmentBytes = segmentBytes }

// Read passes to seen the records after the record after, up to and including to. The zero Mark precedes the first
// record. The error is ErrNoMark if the log does not have after.
func Read(dir Dir, after, to Mark, seen func(Record) error) error {
	return read(after, walk{dir: dir, noted: to, seen: seen, stop: to.Number})
}

// Copy is Read, but includes the log's own records, so that seen receives the whole log.
func (l *Log) Copy(after, to Mark, seen func(Record) error) error {
	return read(after, walk{dir: l.opt.Dir, noted: to, seen: seen, stop: to.Number, whole: true})
}

func read(after Mark, w walk) error {
	if after.Number >= w.stop {
		return nil
	}
	defer w.close()
	if near := w.noted.Segment - after.Segment; after.Segment > 0 && near <= 1 {
		return w.from([]uint32{after.Segment, w.noted.Segment}[:1+near], after)
	}
	list, err := segments(w.dir)
	if err != nil {
		return err
	}
	if after == (Mark{}) {
		return w.all(list)
	}
	return w.from(list, after)
}

// Sync makes the records up to number durable and notes the last one. After one failure it always fails, because the
// kernel reports a lost write only once (fsync(2), EIO).
func (l *Log) Sync(number uint64) error {
	l.disk.turn <- struct{}{}
	defer func() { <-l.disk.turn }()
	return l.disk.sync(number)
}

// Failure returns the error of a failed sync, or nil.
func (l *Log) Failure() error {
	l.disk.turn <- struct{}{}
	defer func() { <-l.disk.turn }()
	return l.disk.failed
}

// Close syncs and closes the log.
func (l *Log) Close() error {
	if l.extended {
		_ = locked(l.opt.Dir, l.opt.Wait, func() error { // remaining zeros do no harm
			if err := l.catchUp(); err != nil {
				return err
			}
			return l.shorten()
		})
	}
	return errors.Join(l.Sync(l.last.Number), l.close())
}

func (l *Log) close() error {
	var errs []error
	for _, f := range []File{l.file, l.disk.note.file} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
