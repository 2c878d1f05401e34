package chain

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Kinds of the log's own records. Seen does not receive them.
const (
	KindSegment = 0   // first record of a segment
	KindRemoved = 255 // segments were removed; see removal
	KindCut     = 254 // incomplete data was removed; see Record.Cut
)

func own(kind byte) bool { return kind == KindSegment || kind >= KindCut }

// ID is the random identifier of a log.
type ID [16]byte

type segmentHeader struct {
	id      ID
	segment uint32
	limit   int64 // size at which the next segment begins, for all writers
}

const (
	segmentMagic = "toold log"
	segmentForm  = 1 // of all records
	segmentBytes = len(segmentMagic) + 1 + len(ID{}) + 4 + 8
)

func (h segmentHeader) encode() []byte {
	p := append([]byte(segmentMagic), segmentForm)
	p = append(p, h.id[:]...)
	p = binary.BigEndian.AppendUint32(p, h.segment)
	return binary.BigEndian.AppendUint64(p, uint64(h.limit))
}

func decodeSegment(r Record) (h segmentHeader, err error) {
	p, is := bytes.CutPrefix(r.Body, []byte(segmentMagic))
	switch {
	case r.Kind != KindSegment, !is, len(p) == 0:
		return h, errBroken
	case p[0] != segmentForm:
		return h, fmt.Errorf("a newer toold wrote it (form %d, this program knows %d); update toold or use another state directory", p[0], segmentForm)
	case len(r.Body) != segmentBytes:
		return h, errBroken
	}
	p = p[1+copy(h.id[:], p[1:]):]
	h.segment, h.limit = binary.BigEndian.Uint32(p), int64(binary.BigEndian.Uint64(p[4:]))
	return h, nil
}

// begin reads the first record of a segment of size bytes. It must follow before. s reads the others.
func begin(file io.ReaderAt, segment uint32, before Mark, size int64) (h segmentHeader, first Record, s *scanner, err error) {
	s = scan(file, Mark{Number: before.Number, Segment: segment, Hash: before.Hash}, size)
	first, err = s.next()
	if errors.Is(err, io.EOF) {
		err = errBroken
	}
	if err == nil {
		h, err = decodeSegment(first)
	}
	if err == nil && h.segment != segment {
		err = errChain
	}
	return h, first, s, err
}

const suffix = ".log"

func segmentName(n uint32) string { return fmt.Sprintf("%08d", n) + suffix }

// segmentNumber returns the number in the file name of a segment, or 0 for another name.
func segmentNumber(name string) uint32 {
	digits, is := strings.CutSuffix(name, suffix)
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || !is || name != segmentName(uint32(n)) {
		return 0
	}
	return uint32(n)
}

func segments(dir Dir) ([]uint32, error) {
	list, err := segmentsLeft(dir)
	for i, n := range list {
		if want := list[0] + uint32(i); n != want {
			return nil, &DamageError{Mark: Mark{Segment: want}, Why: "this segment is missing"}
		}
	}
	return list, err
}

// segmentsLeft is segments, but allows gaps.
func segmentsLeft(dir Dir) (list []uint32, err error) {
	names, err := dir.Names()
	if err != nil {
		return nil, fmt.Errorf("cannot list the log's segments: %w", err)
	}
	for _, name := range names {
		if n := segmentNumber(name); n > 0 {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, nil
}
