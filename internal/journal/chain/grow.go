package chain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// catchUp reads the records that other processes have appended. The caller holds the lock.
func (l *Log) catchUp() error {
	for {
		size, same, err := l.opt.Dir.Same(l.file)
		if err != nil {
			return err
		}
		if !same {
			return ErrGone
		}
		if size < l.end {
			return l.damage("the end of the segment was cut off")
		}
		if size > l.end {
			if err := l.readOn(size); err != nil {
				return err
			}
		}
		if l.end < l.limit {
			return nil
		}
		if moved, err := l.goOn(); err != nil || !moved {
			return err
		}
	}
}

// Present returns ErrGone if the log was moved, removed or replaced since Open.
func (l *Log) Present() error {
	d := &l.disk
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	_, same, err := l.opt.Dir.Same(d.file)
	if err == nil && !same {
		return ErrGone
	}
	return err
}

// damage returns the error for an invalid or missing record after the last one.
func (l *Log) damage(why string) error {
	return &DamageError{Mark{Number: l.last.Number + 1, Segment: l.last.Segment, Offset: l.end}, why}
}

// readOn reads records that others appended to the segment, and cuts off an incomplete one. The caller holds the lock,
// so no process is still writing that record.
func (l *Log) readOn(size int64) error {
	n, err := l.file.ReadAt(l.next[:], l.end)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot read the log: %w", err)
	}
	if isZero(l.next[:n]) {
		return nil
	}
	s := scan(l.file, Mark{l.last.Number, l.last.Segment, l.end, l.last.Hash}, size)
	for {
		r, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errBroken):
			noted, noteErr := l.disk.note.read(false)
			if noteErr != nil {
				return noteErr
			}
			if noted.Number > l.last.Number {
				return l.damage(err.Error())
			}
			if readOnly(l.file) {
				return nil
			}
			if size, err = written(l.file, size); err != nil {
				return err
			}
			return l.cutOff(size)
		case errors.Is(err, errChain):
			return l.damage(err.Error())
		case err != nil:
			return fmt.Errorf("cannot read the log: %w", err)
		}
		if !own(r.Kind) {
			if err := l.opt.Seen(r); err != nil {
				return err
			}
		}
		l.last, l.end = r.Mark, s.at.Offset
		l.disk.written.Store(&r.Mark)
	}
}

// goOn moves to the next segment if another process has begun it. The caller holds the lock.
func (l *Log) goOn() (moved bool, err error) {
	f, err := l.opt.Dir.Open(segmentName(l.last.Segment + 1))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	size, err := f.Size()
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	noted, err := l.disk.note.read(false)
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	h, first, s, err := begin(f, l.last.Segment+1, l.last, size)
	switch {
	case errors.Is(err, errBroken) && noted.Number <= l.last.Number:
		return false, f.Close() // its creator died; Log.begin creates it again
	case err == nil && h.id != l.id, errors.Is(err, errChain), errors.Is(err, errBroken):
		err = &DamageError{Mark{Number: l.last.Number + 1, Segment: l.last.Segment + 1}, "the segment does not follow the one before"}
	}
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	if !readOnly(f) {
		err = rewrite(f, noted, first.Segment, size)
	}
	if err == nil {
		err = l.change(f, h.limit, first.Mark, s.at.Offset)
	}
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	return true, nil
}

// ahead is how many bytes of zeros Extend writes, page by page: writes into large folios of the page cache are slower.
const (
	ahead = 512 << 10
	page  = 4 << 10
)

// Extend preallocates zeros after the last record, up to the segment's limit, because a sync is faster when the file
// does not grow. It must not run concurrently with Update.
func (l *Log) Extend() error { return locked(l.opt.Dir, l.opt.Wait, l.extend) }

func (l *Log) extend() error {
	if err := l.catchUp(); err != nil {
		return err
	}
	if readOnly(l.file) {
		return nil
	}
	size, err := l.file.Size()
	enough := size-l.end > ahead/2 || size >= l.limit
	if err != nil || enough || l.unready == l.last.Segment {
		return err
	}
	to := min(l.end+ahead, l.limit)
	zeros := make([]byte, page)
	for at := size; at < to && err == nil; {
		n := min(page-at%page, to-at)
		_, err = l.file.WriteAt(zeros[:n], at)
		at += n
	}
	if err != nil { // leave the space to others
		l.unready = l.last.Segment
		return errors.Join(err, l.file.Truncate(size))
	}
	l.extended = true
	l.disk.resized()
	return nil
}

// shorten removes the zeros after the last record. The caller holds the lock.
func (l *Log) shorten() error {
	size, err := l.file.Size()
	if err != nil || size <= l.end {
		return err
	}
	err = l.file.Truncate(l.end)
	l.disk.resized() // after Truncate: an earlier sync would not make it durable
	return err
}

// rotate begins the next segment. The caller holds the lock.
func (l *Log) rotate() error {
	if err := l.shorten(); err != nil { // zeros may be left from before a power cut
		return err
	}
	if err := l.Sync(l.last.Number); err != nil {
		return err
	}
	if err := l.disk.note.settle(l.last); err != nil {
		return err
	}
	return l.begin(l.last.Segment + 1)
}

// begin creates a segment and moves to it. After an error the next caller tries again.
func (l *Log) begin(segment uint32) error {
	f, err := l.opt.Dir.Create(segmentName(segment))
	if err != nil {
		return err
	}
	h := segmentHeader{l.id, segment, l.opt.SegmentBytes}
	text, hash := appendRecord(nil, l.last, KindSegment, time.Now(), h.encode())
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	if err == nil {
		err = l.change(f, h.limit, Mark{l.last.Number + 1, segment, 0, hash}, int64(len(text)))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// change moves to another segment once it and all earlier ones are on the disk.
func (l *Log) change(f File, limit int64, last Mark, end int64) error {
	d := &l.disk
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	if l.file != nil {
		if err := d.sync(l.last.Number); err != nil {
			return err
		}
	}
	if err := errors.Join(f.Sync(), l.opt.Dir.Sync()); err != nil {
		return d.fail(err)
	}
	old := l.file
	l.limit = limit
	l.adopt(f, last, end)
	if old != nil {
		_ = old.Close() // it is synced
	}
	return nil
}

// rewrite writes the bytes after the noted record again. If another process failed to sync them, the kernel considers
// the pages clean, and the next sync would skip them.
func rewrite(f File, noted Mark, segment uint32, end int64) error {
	from := int64(0)
	if noted.Segment == segment {
		from = noted.Offset
	}
	p := make([]byte, min(end-from, 1<<20))
	for from < end {
		n, err := f.ReadAt(p[:min(end-from, int64(len(p)))], from)
		if n == 0 {
			return fmt.Errorf("cannot read the log: %w", err)
		}
		if _, err := f.WriteAt(p[:n], from); err != nil {
			return fmt.Errorf("cannot write to the log: %w", err)
		}
		from += int64(n)
	}
	return nil
}

// adopt sets the current segment. The caller has the turn of disk or is alone.
func (l *Log) adopt(f File, last Mark, end int64) {
	l.file, l.last, l.end = f, last, end
	l.disk.file = f
	l.disk.written.Store(&last)
}
