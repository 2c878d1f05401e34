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

// Hash is the SHA-256 of an encoded record.
type Hash [sha256.Size]byte

// Record is one entry of a Log.
type Record struct {
	Mark
	Before Hash // hash of the previous record
	Kind   byte
	Time   time.Time
	Body   []byte
	Text   []byte // encoded record
}

// Mark identifies a record by position and hash.
type Mark struct {
	Number  uint64 // from 1
	Segment uint32
	Offset  int64 // in its segment
	Hash    Hash
}

// An encoded record, integers in big-endian order:
//
//	4 length of the body
//	4 CRC-32C of all other fields
//	32 SHA-256 of the previous record
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

	// MaxBody limits the body of a record.
	MaxBody = 32 << 20
)

var (
	errBroken = errors.New("it is incomplete or damaged")
	errChain  = errors.New("it does not follow the record before")
)

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

func checksum(text []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // cached by the library
	return crc32.Update(crc32.Update(0, table, text[:crcAt]), table, text[beforeAt:])
}

type scanner struct {
	in *bufio.Reader
	to int64 // no record begins at or after this offset
	at Mark  // the last record, but with the offset of the next one
}

// scan reads the records after the record after, from after.Offset up to offset to.
func scan(file io.ReaderAt, after Mark, to int64) *scanner {
	in := io.NewSectionReader(file, after.Offset, math.MaxInt64-after.Offset)
	return &scanner{bufio.NewReaderSize(in, int(min(max(to-after.Offset, bodyAt), 64<<10))), to, after}
}

// next returns io.EOF after the last record, and errBroken or errChain for an invalid one.
func (s *scanner) next() (Record, error) {
	if s.at.Offset >= s.to {
		return Record{}, io.EOF
	}
	head, err := s.in.Peek(bodyAt)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return Record{}, err
	case isZero(head):
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
	r, _, err := decodeUnlinked(text, s.at.Segment, s.at.Offset)
	if err != nil {
		return Record{}, err
	}
	if r.Hash = sha256.Sum256(text); r.Before != s.at.Hash || r.Number != s.at.Number+1 {
		return Record{}, errChain
	}
	s.at = r.Mark
	s.at.Offset += size
	return r, nil
}

// blank reports whether p contains only zeros. No record begins like that; see Log.Extend.
func isZero(p []byte) bool { return len(bytes.TrimLeft(p, "\x00")) == 0 }

// written returns the offset of the trailing zeros of a file. The first of them may belong to a record.
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

// shorter maps end of file to errBroken: the file is shorter than its records say.
func shorter(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errBroken
	}
	return err
}
