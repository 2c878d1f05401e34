package chain

import (
	"encoding/binary"
	"errors"
	"io"
	"time"
)

// Salvage passes on the damaged record at from and whatever records follow, unverified.
func Salvage(dir Dir, from Mark, seen func(Record)) error {
	list, err := segmentsLeft(dir)
	if err != nil {
		return err
	}
	for _, n := range list {
		if n < from.Segment {
			continue
		}
		begin := int64(0)
		if n == from.Segment {
			begin = from.Offset
		}
		f, err := dir.Open(segmentName(n))
		if err != nil {
			return err
		}
		size, err := f.Size()
		text := make([]byte, max(0, size-begin))
		if err == nil {
			_, err = f.ReadAt(text, begin)
		}
		if err = errors.Join(err, f.Close()); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		salvage(text, Mark{Number: from.Number, Segment: n, Offset: begin}, seen)
	}
	return nil
}

func salvage(text []byte, from Mark, seen func(Record)) {
	for at := 0; at+bodyAt < len(text); {
		end := at + recordSize(text[at:], from.Number)
		if end == at {
			for end++; end < len(text) && recordSize(text[end:], from.Number) == 0; {
				end++
			}
		}
		if r := text[at:end]; len(r) >= bodyAt {
			m := Mark{Number: binary.BigEndian.Uint64(r[numberAt:]), Segment: from.Segment, Offset: from.Offset + int64(at)}
			seen(Record{Mark: m, Kind: r[kindAt], Time: time.Unix(0, int64(binary.BigEndian.Uint64(r[timeAt:]))).UTC(), Body: r[bodyAt:]})
		}
		at = end
	}
}

// recordSize returns the size of an intact record whose number is at least least, or 0.
func recordSize(p []byte, least uint64) int {
	if len(p) < bodyAt {
		return 0
	}
	size, n := bodyAt+int64(binary.BigEndian.Uint32(p)), binary.BigEndian.Uint64(p[numberAt:])
	if size > int64(len(p)) || n < least || n > least+1<<40 {
		return 0
	}
	if checksum(p[:size]) != binary.BigEndian.Uint32(p[crcAt:]) {
		return 0
	}
	return int(size)
}
