package chain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Segment is a part of a log that can be removed as a whole.
type Segment struct {
	Number uint32
	Bytes  int64     // including blobs
	Begun  time.Time // of the first record
}

// Segments lists the segments, oldest first. It is safe for concurrent use.
func (l *Log) Segments() ([]Segment, error) {
	numbers, err := segments(l.opt.Dir)
	if err != nil {
		return nil, err
	}
	blobs := map[uint32]int64{}
	err = eachBlob(l.opt.Dir, func(d Dir, name string, segment uint32) error {
		f, err := d.Open(name)
		if err != nil {
			return err
		}
		size, err := f.Size()
		blobs[segment] += size
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return nil, err
	}
	list := make([]Segment, len(numbers))
	for i, n := range numbers {
		first, size, err := l.header(n)
		if errors.Is(err, errBroken) && i > 0 && i == len(numbers)-1 { // it is being created
			return list[:i], nil
		}
		if err != nil {
			return nil, err
		}
		list[i] = Segment{n, size + blobs[n], first.Time}
	}
	return list, nil
}

func (l *Log) header(n uint32) (first Record, size int64, err error) {
	f, err := l.opt.Dir.Open(segmentName(n))
	if err != nil {
		return first, 0, err
	}
	defer f.Close()
	if size, err = f.Size(); err != nil {
		return first, 0, err
	}
	first, _, err = recordAt(f, Mark{Segment: n}, size)
	return first, size, err
}

// removal says where a log may begin: a segment and the record before it. A KindRemoved record lists every removed
// segment, because a crash may leave some of them.
type removal struct {
	segment uint32
	before  Mark // Number and Hash
}

const removalBytes = 4 + 8 + len(Hash{})

func (r removal) append(p []byte) []byte {
	p = binary.BigEndian.AppendUint32(p, r.segment)
	p = binary.BigEndian.AppendUint64(p, r.before.Number)
	return append(p, r.before.Hash[:]...)
}

func (r removal) allows(body []byte) bool {
	want := string(r.append(nil))
	for ; len(body) >= removalBytes; body = body[removalBytes:] {
		if string(body[:removalBytes]) == want {
			return true
		}
	}
	return false
}

// Remove removes the oldest segments and their blobs. choose returns the first segment to keep, and may append records
// if any are removed. The last segment is always kept.
func (l *Log) Remove(choose func(b *Batch, first, last uint32) (stays uint32, err error)) error {
	return locked(l.opt.Dir, l.opt.Wait, func() error { return l.remove(choose) })
}

func (l *Log) remove(choose func(b *Batch, first, last uint32) (stays uint32, err error)) (err error) {
	var gone []uint32
	err = l.update(func(b *Batch) error {
		gone, err = l.removable(b, choose)
		return err
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	if err := l.Sync(l.last.Number); err != nil {
		return err
	}
	if err := l.disk.note.settle(l.last); err != nil {
		return err
	}
	for _, n := range gone {
		if err := l.opt.Dir.Remove(segmentName(n)); err != nil {
			return fmt.Errorf("cannot remove a segment of the log: %w", err)
		}
		if err := l.opt.Dir.Sync(); err != nil { // so that a crash also leaves the newer ones
			return err
		}
	}
	stays := gone[len(gone)-1] + 1
	return eachBlob(l.opt.Dir, func(d Dir, name string, segment uint32) error {
		if segment >= stays {
			return nil
		}
		return d.Remove(name)
	})
}

func (l *Log) removable(b *Batch, choose func(b *Batch, first, last uint32) (uint32, error)) ([]uint32, error) {
	list, err := segments(l.opt.Dir)
	if err != nil {
		return nil, err
	}
	first, last := list[0], list[len(list)-1]
	stays, err := choose(b, first, last)
	stays = min(stays, last)
	if err != nil || stays <= first {
		return nil, err
	}
	var body []byte
	for n := first + 1; n <= stays; n++ {
		f, err := l.opt.Dir.Open(segmentName(n))
		if err != nil {
			return nil, err
		}
		before, err := follows(f, Mark{Segment: n})
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		body = removal{n, before}.append(body)
	}
	_, err = b.Append(KindRemoved, body)
	return list[:stays-first], err
}

const cutKept = 1 << 20 // maximum number of cut bytes in a record

// cutOff removes the data after the last record and records it, unless the disk is full.
func (l *Log) cutOff(size int64) error {
	rest := make([]byte, min(size-l.end, cutKept))
	n, _ := l.file.ReadAt(rest, l.end)
	if err := l.file.Truncate(l.end); err != nil {
		return err
	}
	b := l.batch()
	if _, err := b.Append(KindCut, append(binary.BigEndian.AppendUint64(nil, uint64(size-l.end)), rest[:n]...)); err != nil {
		return err
	}
	_ = l.write(&b)
	return nil
}

// Cut is incomplete data that Open removed from the end of the log after a crash.
type Cut struct {
	Number uint64 // of the record that describes the cut
	Time   time.Time
	Bytes  int64
	Text   []byte // first bytes
}

// Cut returns what a KindCut record describes. For another record it returns the zero Cut.
func (r Record) Cut() Cut {
	if r.Kind != KindCut || len(r.Body) < 8 {
		return Cut{}
	}
	return Cut{r.Number, r.Time, int64(binary.BigEndian.Uint64(r.Body)), r.Body[8:]}
}
