// Package chain is an append-only log of records in segment files, each record chained to
// the one before by its hash.
//
// Several processes may write one log. Who appends takes the lock of the directory, reads
// what others have appended since, and then writes all of its records with one write; see
// Log.Update. They are on the disk after Log.Sync, which others may do meanwhile and which
// covers the records of all. What is returned as appended, and then synced, is found again
// by every later Open, or Open fails.
//
// A note of the last record that is on the disk is kept in another directory. A log that is
// shorter than its note, or differs there, has lost its end or was changed: it is not
// opened. Behind the note, what a process or the machine left incomplete is cut off.
//
// Zeros may be behind the last record, see Log.Extend: the log ends where a record begins with
// nothing else. All that follows is then zeros, too, or was left incomplete.
//
// A text too large for a record is in a file beside the log, which the record names by its
// hash. Segments are removed as a whole, the oldest first, with the texts of their records: a
// later record says where the log may begin then. What is cut off is in a record too.
//
// The package knows nothing of what is in the records, and does not retry what has failed.
package chain

import (
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Errors of a Log.
var (
	ErrGone   = errors.New("the log was deleted or replaced while it is open; what is written to it now would be lost")
	ErrUnsure = errors.New("whether it was recorded is not known")
	ErrNoMark = errors.New("the log has no such record")
)

// DamageError says that a log has lost records, or was changed.
type DamageError struct {
	Mark Mark // where the first record should be that is not
	Why  string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("the log is damaged: record number %d (%s, byte %d): %s", e.Mark.Number, segmentName(max(e.Mark.Segment, 1)), e.Mark.Offset, e.Why)
}

// Options is what a Log works with.
type Options struct {
	Dir   Dir
	Notes Dir    // where the note is; nil, for Verify only, when Noted says what it would
	Note  string // the name of its file
	Noted Mark
	// SegmentBytes is how large a segment becomes before the next one begins. It is
	// chosen when a segment is made.
	SegmentBytes int64
	Wait         time.Duration // for the lock
	// From is a record that the caller has seen: Open passes on only later ones, and reads
	// no earlier one but that of the note. The error is ErrNoMark when the log has another
	// one there, or none. Zero means the beginning.
	From Mark
	// Begins is the first segment that the log must have, for all that the caller has seen of
	// removals; 0 is the same as 1. Without that segment the error is ErrNoMark, too.
	Begins uint32
	// Seen is called for each record that this Log did not append, in their order. When it
	// fails, so does what has read the record.
	Seen func(Record) error
	// Own is called by Verify for each of the log's own records; it may be nil.
	Own func(Record)
	// Synced is called after each attempt to bring records to the disk, with how long it
	// took; nil = it is not called. It must not block.
	Synced func(took time.Duration, err error)
}

// A Log is an open log. Update must not be called at the same time as another Update or
// Close; Sync may be.
type Log struct {
	opt   Options
	id    ID
	file  File // the current segment
	limit int64
	last  Mark   // of the last record
	end   int64  // of it
	text  []byte // of an earlier batch, to be used again
	disk  disk

	extended bool         // Extend has written zeros
	unready  uint32       // the segment that it could not extend
	next     [bodyAt]byte // what is read behind the last record
}

// Open opens a log, and makes it when there is none. All its records are passed to Seen.
// The error is a *DamageError when it has lost what was noted.
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
	if err = l.opt.Dir.Sync(); err != nil { // whoever made a segment may have died before
		return err
	}
	return l.repair()
}

// repair writes the note anew when a power cut has torn it.
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

// ID returns the name of the log.
func (l *Log) ID() ID { return l.id }

// Last returns the last record. It must not be called at the same time as Update.
func (l *Log) Last() Mark { return l.last }

// Update has do append records, after all that others have appended was passed to Seen.
// All of them are written with one write, or none when it fails or do does. The error is
// ErrUnsure when it is not known whether they were: then they may be passed to Seen later.
func (l *Log) Update(do func(*Batch) error) error {
	unlock, err := l.opt.Dir.Lock(l.opt.Wait)
	if err != nil {
		return err
	}
	defer unlock()
	return l.update(do)
}

// update is Update for a caller that has the lock.
func (l *Log) update(do func(*Batch) error) error {
	if err := l.catchUp(); err != nil {
		return err
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

// batch begins a batch behind the last record.
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

// keptText is how large a buffer is kept for the next batch.
const keptText = 256 << 10

// Batch is the records that one Update appends.
type Batch struct {
	dir  Dir // of the log
	text []byte
	last Mark
	end  int64
	now  time.Time

	beside int64 // bytes of its blobs
}

// Bytes is how much it adds to the log, with what is kept beside it.
func (b *Batch) Bytes() int64 { return int64(len(b.text)) + b.beside }

// Time is that of its records, as it is read from them.
func (b *Batch) Time() time.Time { return b.now }

// Last is the record that the next one follows.
func (b *Batch) Last() Mark { return b.last }

// SetTime changes it for the records that follow, which were made elsewhere before.
func (b *Batch) SetTime(at time.Time) { b.now = at }

// Append adds a record. kind is not one of the log's own.
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

// CatchUp passes what others have appended to Seen. It gives up after wait, with ErrBusy.
// It must not be called at the same time as Update.
func (l *Log) CatchUp(wait time.Duration) error {
	unlock, err := l.opt.Dir.Lock(wait)
	if err != nil {
		return err
	}
	defer unlock()
	return l.catchUp()
}

// WaitFor sets how long Update waits for the lock. It must not be called at the same time
// as Update.
func (l *Log) WaitFor(most time.Duration) { l.opt.Wait = most }

// Begin sets how large the segments become that are begun from now on. It must not be called at
// the same time as Update.
func (l *Log) Begin(segmentBytes int64) { l.opt.SegmentBytes = segmentBytes }

// Read passes the records of a log behind one mark, up to another one, to seen. Both are of records
// that the log has; the zero Mark is before the first. It may be called at any time. The
// error is ErrNoMark when the log has another record at after, or none.
func Read(dir Dir, after, to Mark, seen func(Record) error) error {
	return read(after, walk{dir: dir, noted: to, seen: seen, stop: to.Number})
}

// Copy is Read, and passes on the log's own records, too. What it passes on is all of the log.
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

// Sync returns when the first records, so many, are on the disk, and notes that. Once it
// has failed it always fails: what the kernel could not write it forgets, and reports
// once (fsync(2), EIO).
func (l *Log) Sync(number uint64) error {
	l.disk.turn <- struct{}{}
	defer func() { <-l.disk.turn }()
	return l.disk.sync(number)
}

// Failure returns why nothing can be brought to the disk any more; nil while it can.
func (l *Log) Failure() error {
	l.disk.turn <- struct{}{}
	defer func() { <-l.disk.turn }()
	return l.disk.failed
}

// Close syncs the log and closes it.
func (l *Log) Close() error {
	if l.extended {
		l.tidy()
	}
	return errors.Join(l.Sync(l.last.Number), l.close())
}

// tidy removes the zeros that Extend has written. Those that stay do no harm.
func (l *Log) tidy() {
	unlock, err := l.opt.Dir.Lock(l.opt.Wait)
	if err != nil {
		return
	}
	defer unlock()
	if l.catchUp() == nil {
		_ = l.shorten()
	}
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
