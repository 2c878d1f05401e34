package chain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

type walk struct {
	dir   Dir
	noted Mark // must be in the log
	seen  func(Record) error
	upTo  int64        // end of the records in the last segment; 0 = unknown
	stop  uint64       // number of the last record to read; 0 = none
	own   func(Record) // receives the log's own records; may be nil
	whole bool         // seen receives them too
	base  removal      // first segment of a log whose beginning was removed

	header segmentHeader
	file   File  // current segment; nil before the first
	last   Mark  // last record
	end    int64 // offset after last
	size   int64
}

// all reads the listed segments. Only the last one may end incompletely, and only after the noted record. A last
// segment without a complete first record is ignored.
func (w *walk) all(list []uint32) error {
	if w.file == nil && len(list) > 0 && list[0] > 1 {
		w.base.segment = list[0]
	}
	for i, n := range list {
		if w.stopped() {
			return nil
		}
		last := i == len(list)-1
		begun, err := w.segment(n, last)
		if err != nil {
			return err
		}
		if begun && !last && w.isCut() {
			return w.damage("it is incomplete or damaged")
		}
	}
	if w.noted.Number > w.last.Number {
		return w.damage(fmt.Sprintf("it is missing, and its end was noted at number %d", w.noted.Number))
	}
	if w.base.segment > 0 && w.stop == 0 {
		return &DamageError{Mark{Number: 1, Segment: w.base.segment - 1}, "it is missing, and no record says that toold has removed it"}
	}
	return nil
}

// from is all, but begins after a record. The noted record may be that one, an earlier or a later one.
func (w *walk) from(list []uint32, after Mark) error {
	i, found := slices.BinarySearch(list, after.Segment)
	if !found {
		return ErrNoMark
	}
	f, err := w.open(after.Segment)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoMark
	}
	if err != nil {
		return err
	}
	w.file = f
	if w.size, err = f.Size(); err != nil {
		return err
	}
	if i == len(list)-1 && w.upTo > 0 {
		w.size = min(w.size, w.upTo)
	}
	if err := w.seek(after); err != nil {
		return err
	}
	if err := w.records(scan(f, Mark{after.Number, after.Segment, w.end, after.Hash}, w.size)); err != nil {
		return err
	}
	if i < len(list)-1 && w.isCut() {
		return w.damage("it is incomplete or damaged")
	}
	return w.all(list[i+1:])
}

func (w *walk) seek(after Mark) error {
	first, _, err := recordAt(w.file, Mark{Segment: after.Segment}, w.size)
	if err == nil {
		w.header, err = decodeSegment(first)
	}
	if err != nil {
		return missing(err)
	}
	r, end, err := recordAt(w.file, after, w.size)
	if err != nil {
		return missing(err)
	}
	if r.Mark != after {
		return ErrNoMark
	}
	w.last, w.end = after, end
	return w.checkEarlier()
}

// missing maps the error for an invalid record to ErrNoMark.
func missing(err error) error {
	if errors.Is(err, errBroken) || errors.Is(err, io.EOF) {
		return ErrNoMark
	}
	return err
}

// recordAt reads the record at a position, without checking its number and predecessor, and returns where it ends.
func recordAt(f io.ReaderAt, at Mark, size int64) (r Record, end int64, err error) {
	before, err := follows(f, at)
	if err != nil {
		return Record{}, 0, err
	}
	s := scan(f, before, min(size, at.Offset+1))
	r, err = s.next()
	return r, s.at.Offset, err
}

// follows returns the number and hash that the record at a position states for its predecessor.
func follows(f io.ReaderAt, at Mark) (before Mark, err error) {
	var p [kindAt - beforeAt]byte
	if _, err := f.ReadAt(p[:], at.Offset+beforeAt); err != nil {
		return Mark{}, shorter(err)
	}
	return Mark{Number: binary.BigEndian.Uint64(p[numberAt-beforeAt:]) - 1, Segment: at.Segment, Offset: at.Offset, Hash: Hash(p[:numberAt-beforeAt])}, nil
}

// checkEarlier checks the noted record, unless it is later than the last one.
func (w *walk) checkEarlier() error {
	if w.noted.Number == 0 || w.noted.Number >= w.last.Number {
		return w.check(w.last)
	}
	f, err := w.open(w.noted.Segment)
	if err != nil {
		return err
	}
	defer f.Close()
	r, _, err := recordAt(f, w.noted, w.noted.Offset+bodyAt+MaxBody)
	if err != nil && missing(err) != ErrNoMark {
		return err
	}
	return w.check(Mark{w.noted.Number, w.noted.Segment, w.noted.Offset, r.Hash})
}

func (w *walk) damage(why string) error {
	return &DamageError{Mark{Number: w.last.Number + 1, Segment: w.last.Segment, Offset: w.end}, why}
}

func (w *walk) open(n uint32) (File, error) {
	f, err := w.dir.Open(segmentName(n))
	switch {
	case errors.Is(err, errNoFile):
		return nil, &DamageError{Mark{Number: w.last.Number + 1, Segment: n}, err.Error()}
	case err != nil:
		return nil, fmt.Errorf("cannot open a segment of the log: %w", err)
	}
	return f, nil
}

// openNext opens the segment after the last record, or the base, and returns the number of bytes to read.
func (w *walk) openNext(n uint32, last bool) (f File, size int64, err error) {
	f, err = w.open(n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("a segment was removed meanwhile: %w", ErrNoMark)
	}
	if err != nil {
		return nil, 0, err
	}
	size, err = f.Size()
	if err == nil && size > mostSegment {
		err = &DamageError{Mark{Number: w.last.Number + 1, Segment: n}, fmt.Sprintf("it has %d bytes, more than toold writes into one", size)}
	}
	if err == nil && n == w.base.segment {
		w.base.before, err = follows(f, Mark{Segment: n})
		w.last = w.base.before
	}
	if err != nil && !errors.Is(err, errBroken) {
		return nil, 0, errors.Join(err, f.Close())
	}
	if last && w.upTo > 0 {
		size = min(size, w.upTo)
	}
	return f, size, nil
}

func (w *walk) segment(n uint32, last bool) (begun bool, err error) {
	f, size, err := w.openNext(n, last)
	if err != nil {
		return false, err
	}
	h, first, s, err := begin(f, n, w.last, size)
	switch {
	case err != nil && last && w.incomplete(err):
		return false, f.Close()
	case errors.Is(err, errBroken), errors.Is(err, errChain), err == nil && w.file != nil && h.id != w.header.id:
		err = &DamageError{Mark{Number: w.last.Number + 1, Segment: n}, "the segment does not follow the one before"}
	}
	if err == nil {
		err = w.check(first.Mark)
	}
	if err != nil {
		return false, errors.Join(err, f.Close())
	}
	w.close()
	w.header, w.file, w.size = h, f, size
	w.last, w.end = first.Mark, s.at.Offset
	if err := w.pass(first); err != nil {
		return true, err
	}
	return true, w.records(s)
}

// incomplete reports whether err means that the process creating this segment died before it had written the first
// record.
func (w *walk) incomplete(err error) bool {
	if w.file != nil && w.end < w.header.limit {
		return false
	}
	return errors.Is(err, errBroken) && w.noted.Number <= w.last.Number
}

func (w *walk) records(s *scanner) error {
	for !w.stopped() {
		r, err := s.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errBroken), errors.Is(err, errChain):
			if w.noted.Number > w.last.Number {
				return w.damage(err.Error())
			}
			return nil
		case err != nil:
			return fmt.Errorf("cannot read the log: %w", err)
		}
		if err := w.check(r.Mark); err != nil {
			return err
		}
		if err := w.pass(r); err != nil {
			return err
		}
		w.last, w.end = r.Mark, s.at.Offset
	}
	return nil
}

func (w *walk) pass(r Record) error {
	if r.Kind == KindRemoved && w.base.allows(r.Body) {
		w.base = removal{}
	}
	if own(r.Kind) && w.own != nil {
		w.own(r)
	}
	if own(r.Kind) && !w.whole {
		return nil
	}
	return w.seen(r)
}

func (w *walk) stopped() bool { return w.stop > 0 && w.last.Number >= w.stop }

func (w *walk) isCut() bool { return w.end < w.size && !w.stopped() }

// check returns an error if a record has the noted number but differs from the note.
func (w *walk) check(m Mark) error {
	if m.Number == w.noted.Number && m != w.noted {
		return &DamageError{m, "it is not the one that was noted: the log was changed, or it is another one"}
	}
	return nil
}

func (w *walk) close() {
	if w.file != nil {
		_ = w.file.Close() // only read
	}
}

// Verify checks that the log is unchanged up to its note, and passes each record to seen. It returns the last record
// and how many bytes follow it. The error is ErrNoMark if segments are removed during the check.
func Verify(o Options) (last Mark, rest int64, err error) {
	w := walk{dir: o.Dir, seen: o.Seen, own: o.Own}
	list, err := w.snapshot(o)
	if err == nil {
		err = w.all(list)
	}
	w.close()
	return w.last, max(0, w.size-w.end), err
}

// snapshot finds the end of the log. It holds the lock meanwhile, so that no process writes.
func (w *walk) snapshot(o Options) (list []uint32, err error) {
	unlock, err := o.Dir.Lock(o.Wait)
	if errors.Is(err, errNoFile) {
		err = &DamageError{Why: "the lock of the log: " + err.Error()}
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	if w.noted, err = noted(o); err != nil {
		return nil, err
	}
	if list, err = segments(o.Dir); err != nil {
		return nil, err
	}
	return list, w.ends(list)
}

// mostSegment limits the bytes read from one file. The configurable maximum is far lower.
const mostSegment = 8 << 30

// ends finds the end of the last segment. The caller holds the lock.
func (w *walk) ends(list []uint32) error {
	if len(list) == 0 {
		return nil
	}
	f, err := w.open(list[len(list)-1])
	if _, is := errors.AsType[*DamageError](err); is {
		return nil // all reports it, after damage in earlier segments
	}
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size <= mostSegment {
		w.upTo, err = written(f, size)
	}
	return errors.Join(err, f.Close())
}

func noted(o Options) (Mark, error) {
	if o.Notes == nil {
		return o.Noted, nil
	}
	n, err := openNote(o, false)
	if err != nil {
		return Mark{}, err
	}
	defer n.file.Close()
	return n.read(true)
}
