package chain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// Reader reads single records by position. It is not safe for concurrent use, and does not verify the chain.
type Reader struct {
	dir   Dir
	files map[uint32]File
	lent  uint32
}

// NewReader returns a Reader. The caller closes it.
func NewReader(dir Dir) *Reader { return &Reader{dir: dir, files: map[uint32]File{}} }

// Lend makes the Reader use an open file for a segment. Close does not close that file.
func (r *Reader) Lend(segment uint32, f File) { r.lent, r.files[segment] = segment, f }

func (r *Reader) Close() {
	r.forget()
	clear(r.files)
}

const keptOpen = 8 // approximate maximum of files that a Reader keeps open

func (r *Reader) forget() {
	for n, f := range r.files {
		if n != r.lent {
			_ = f.Close() // only read
			delete(r.files, n)
		}
	}
}

const guess = 2 << 10 // most records are no longer

// Record returns the record at an offset, without its hash. The error is ErrNoMark if the segment was removed. Any
// other error means that no intact record could be read.
func (r *Reader) Record(segment uint32, offset int64) (Record, error) {
	f, err := r.open(segment)
	if err != nil {
		return Record{}, err
	}
	p := make([]byte, guess)
	n, err := f.ReadAt(p, offset)
	if n < bodyAt {
		return Record{}, r.broken(segment, offset, err)
	}
	size := bodyAt + int64(binary.BigEndian.Uint32(p))
	if size > bodyAt+MaxBody {
		return Record{}, r.broken(segment, offset, nil)
	}
	if size > int64(n) {
		p = append(p[:n], make([]byte, size-int64(n))...)
		if m, err := f.ReadAt(p[n:], offset+int64(n)); int64(m) < size-int64(n) {
			return Record{}, r.broken(segment, offset, err)
		}
	}
	rec, _, err := decodeUnlinked(p[:size], segment, offset)
	if err != nil {
		return Record{}, r.broken(segment, offset, nil)
	}
	return rec, nil
}

// Each passes to seen the records of a segment from an offset up to number to. A record is valid until seen returns.
// seen must not use the Reader.
func (r *Reader) Each(segment uint32, offset int64, to uint64, seen func(Record) error) error {
	f, err := r.open(segment)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	for p := make([]byte, 1<<20); offset < size; {
		n, err := f.ReadAt(p, offset)
		if n == 0 {
			return r.broken(segment, offset, err)
		}
		rest := p[:n]
		for len(rest) >= bodyAt {
			rec, end, err := decodeUnlinked(rest, segment, offset)
			if end > int64(len(rest)) {
				if end > int64(len(p)) {
					p = make([]byte, end)
				}
				break
			}
			if err != nil {
				return r.broken(segment, offset, nil)
			}
			if err := seen(rec); err != nil || rec.Number >= to {
				return err
			}
			rest, offset = rest[end:], offset+end
		}
		if len(rest) == n && (err != nil || offset+int64(n) == size) { // the file may have shrunk
			return r.broken(segment, offset, nil)
		}
	}
	return nil
}

// decodeUnlinked decodes the record at the beginning of p without checking its predecessor. The returned size may exceed p.
func decodeUnlinked(p []byte, segment uint32, offset int64) (Record, int64, error) {
	size := bodyAt + int64(binary.BigEndian.Uint32(p))
	if size > bodyAt+MaxBody {
		return Record{}, 0, errBroken
	}
	if size > int64(len(p)) {
		return Record{}, size, errBroken
	}
	p = p[:size]
	if checksum(p) != binary.BigEndian.Uint32(p[crcAt:]) {
		return Record{}, 0, errBroken
	}
	return Record{
		Mark:   Mark{Number: binary.BigEndian.Uint64(p[numberAt:]), Segment: segment, Offset: offset},
		Before: Hash(p[beforeAt:numberAt]), Kind: p[kindAt], Time: time.Unix(0, int64(binary.BigEndian.Uint64(p[timeAt:]))).UTC(), Body: p[bodyAt:], Text: p,
	}, size, nil
}

func (r *Reader) broken(segment uint32, offset int64, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		err = errBroken
	}
	return fmt.Errorf("cannot read the record at byte %d of %s: %w", offset, segmentName(segment), err)
}

func (r *Reader) open(segment uint32) (File, error) {
	if f := r.files[segment]; f != nil {
		return f, nil
	}
	if len(r.files) > keptOpen {
		r.forget()
	}
	f, err := OpenSegment(r.dir, segment)
	if err == nil {
		r.files[segment] = f
	}
	return f, err
}

// OpenSegment opens a segment. The error is ErrNoMark if it was removed.
func OpenSegment(dir Dir, segment uint32) (File, error) {
	f, err := dir.Open(segmentName(segment))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot open %s: %w", segmentName(segment), ErrNoMark)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open a segment of the log: %w", err)
	}
	return f, nil
}

// Identify returns the ID of the log in dir, zero if no segment header can be read, and the number of its first
// segment, 0 if there is none.
func Identify(dir Dir) (id ID, first uint32, err error) {
	list, err := segmentsLeft(dir)
	if err != nil || len(list) == 0 {
		return id, 0, err
	}
	r := NewReader(dir)
	defer r.Close()
	for _, n := range list {
		rec, err := r.Record(n, 0)
		if err != nil {
			continue
		}
		if h, err := decodeSegment(rec); err == nil {
			return h.id, list[0], nil
		}
	}
	return id, list[0], nil
}
