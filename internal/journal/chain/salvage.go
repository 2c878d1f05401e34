package chain

import (
	"encoding/binary"
	"errors"
	"time"
)

// Salvage passes to seen the damaged record at from and all later records, unverified.
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
		err = salvageFile(f, Mark{Number: from.Number, Segment: n, Offset: begin}, seen)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

const window = 2 * (bodyAt + MaxBody) // bytes in memory

func salvageFile(f File, from Mark, seen func(Record)) error {
	all, err := f.Size()
	size := int64(0)
	if err == nil {
		size, err = written(f, min(all, mostSegment))
	}
	size = min(all, size+bodyAt+MaxBody) // the last record may end with zeros
	if err != nil || size <= from.Offset {
		return err
	}
	text, broken := make([]byte, min(size-from.Offset, window)), false
	for from.Offset < size {
		text = text[:min(size-from.Offset, window)]
		if n, err := f.ReadAt(text, from.Offset); n < len(text) {
			return err
		}
		used := len(text)
		if from.Offset+int64(used) < size {
			used -= bodyAt + MaxBody // any record that begins before this is whole
		}
		used, broken = salvage(text, used, from, broken, seen)
		from.Offset += int64(used)
	}
	return nil
}

// salvage passes to seen the records that begin before to, but not the rest of a broken one. It returns the offset of
// the remaining text, and whether that continues a broken record.
func salvage(text []byte, to int, from Mark, broken bool, seen func(Record)) (int, bool) {
	at := 0
	for at < to {
		end := at + recordSize(text[at:], from.Number)
		intact := end > at
		if !intact {
			for end++; end < to && recordSize(text[end:], from.Number) == 0; {
				end++
			}
		}
		if r := text[at:end]; len(r) >= bodyAt && (intact || !broken) {
			m := Mark{Number: binary.BigEndian.Uint64(r[numberAt:]), Segment: from.Segment, Offset: from.Offset + int64(at)}
			seen(Record{Mark: m, Kind: r[kindAt], Time: time.Unix(0, int64(binary.BigEndian.Uint64(r[timeAt:]))).UTC(), Body: r[bodyAt:]})
		}
		at, broken = end, !intact
	}
	return at, broken
}

// recordSize returns the size of an intact record numbered least or higher, or 0.
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
