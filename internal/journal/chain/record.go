package chain

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// A Hash is that of a whole record, as it is in the file.
type Hash [sha256.Size]byte

// Record is one entry of a Log.
type Record struct {
	Mark
	Before Hash // of the record before
	Kind   byte
	Time   time.Time
	Body   []byte
	Text   []byte // the whole record, as it is in the file
}

// Mark is where a record is, and its hash.
type Mark struct {
	Number  uint64 // the first is 1
	Segment uint32
	Offset  int64 // in its segment
	Hash    Hash
}

// A record in the file, with integers in big-endian order:
//
//	4 length of the body
//	4 CRC-32C of all but this field
//	32 SHA-256 of the record before
//	8 number
//	1 kind
//	8 nanoseconds since 1970, UTC
//	… body
const (
	crcAt    = 4
	beforeAt = 8
	numberAt = beforeAt + sha256.Size
	kindAt   = numberAt + 8
	timeAt   = kindAt + 1
	bodyAt   = timeAt + 8

	// MaxBody is how long the body of a record may be.
	MaxBody = 32 << 20
)

var (
	errBroken = errors.New("it is incomplete or damaged")
	errChain  = errors.New("it does not follow the record before")
)

// appendRecord adds an encoded record to p, which follows another one, and returns its hash.
func appendRecord(p []byte, before Mark, kind byte, now time.Time, body []byte) ([]byte, Hash) {
	begin := len(p)
	p = binary.BigEndian.AppendUint32(p, uint32(len(body)))
	p = append(p, 0, 0, 0, 0)
	p = append(p, before.Hash[:]...)
	p = binary.BigEndian.AppendUint64(p, before.Number+1)
	p = append(p, kind)
	p = binary.BigEndian.AppendUint64(p, uint64(now.UnixNano()))
	p = append(p, body...)
	text := p[begin:]
	binary.BigEndian.PutUint32(text[crcAt:], checksum(text))
	return p, sha256.Sum256(text)
}

// checksum is the CRC of an encoded record.
func checksum(text []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // made once by the library
	return crc32.Update(crc32.Update(0, table, text[:crcAt]), table, text[beforeAt:])
}

// scanner reads the records of a segment one after the other.
type scanner struct {
	in *bufio.Reader
	to int64 // no record begins there or later
	at Mark  // of the last record; Offset is that of the next one
}

// scan begins at after.Offset with the record that follows the one that after names. The last
// record begins before the offset to.
func scan(file io.ReaderAt, after Mark, to int64) *scanner {
	in := io.NewSectionReader(file, after.Offset, math.MaxInt64-after.Offset)
	return &scanner{bufio.NewReaderSize(in, int(min(max(to-after.Offset, bodyAt), 64<<10))), to, after}
}

// next returns io.EOF after the last record, errBroken or errChain for what is no record
// at this place, and what the file answers when it cannot be read.
func (s *scanner) next() (Record, error) {
	if s.at.Offset >= s.to {
		return Record{}, io.EOF
	}
	head, err := s.in.Peek(bodyAt)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return Record{}, err
	case blank(head):
		return Record{}, io.EOF
	case err != nil:
		return Record{}, errBroken
	}
	size := bodyAt + int64(binary.BigEndian.Uint32(head))
	if size > bodyAt+MaxBody {
		return Record{}, errBroken
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(s.in, text); err != nil {
		return Record{}, shorter(err)
	}
	if checksum(text) != binary.BigEndian.Uint32(text[crcAt:]) {
		return Record{}, errBroken
	}
	r := Record{
		Mark:   Mark{s.at.Number + 1, s.at.Segment, s.at.Offset, sha256.Sum256(text)},
		Before: s.at.Hash, Kind: text[kindAt], Time: time.Unix(0, int64(binary.BigEndian.Uint64(text[timeAt:]))).UTC(), Body: text[bodyAt:], Text: text,
	}
	if Hash(text[beforeAt:numberAt]) != s.at.Hash || binary.BigEndian.Uint64(text[numberAt:]) != r.Number {
		return Record{}, errChain
	}
	s.at = r.Mark
	s.at.Offset += size
	return r, nil
}

// blank reports whether a text is zeros only, which no record begins with: see Log.Extend.
func blank(p []byte) bool { return len(bytes.TrimLeft(p, "\x00")) == 0 }

// written is where the zeros begin with which a file ends that has size bytes. They may be the
// last ones of a record.
func written(f io.ReaderAt, size int64) (int64, error) {
	p := make([]byte, min(size, 64<<10))
	zeros := make([]byte, len(p))
	for size > 0 {
		p = p[:min(size, int64(len(p)))]
		if n, err := f.ReadAt(p, size-int64(len(p))); n < len(p) {
			return 0, fmt.Errorf("cannot read the log: %w", shorter(err))
		}
		if !bytes.Equal(p, zeros[:len(p)]) {
			return size - int64(len(p)-len(bytes.TrimRight(p, "\x00"))), nil
		}
		size -= int64(len(p))
	}
	return 0, nil
}

// shorter is the error of reading a file: one that has become shorter is broken.
func shorter(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errBroken
	}
	return err
}
