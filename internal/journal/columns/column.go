package columns

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Rows is a sorted selection of rows of a table.
type Rows struct {
	low, high int // range, if list is nil
	list      []int32
}

// Between returns the rows from low up to, excluding, high.
func Between(low, high int) Rows { return Rows{low: low, high: max(low, high)} }

// List returns the listed rows.
func List(list []int32) Rows { return Rows{list: append([]int32{}, list...)} }

// Len returns the number of rows.
func (r Rows) Len() int {
	if r.list != nil {
		return len(r.list)
	}
	return r.high - r.low
}

// At returns the i-th row.
func (r Rows) At(i int) int {
	if r.list != nil {
		return int(r.list[i])
	}
	return r.low + i
}

// Pick returns the rows of in whose hash is in want.
func Pick(column []uint32, in Rows, want []uint32) Rows {
	found := make([]int32, 0, in.Len()/8)
	if in.list == nil && len(want) == 1 { // the most frequent query, on the most rows
		w := want[0]
		for i, v := range column[in.low:in.high] {
			if v == w {
				found = append(found, int32(in.low+i))
			}
		}
		return Rows{list: found}
	}
	for i := range in.Len() {
		if row := in.At(i); slices.Contains(want, column[row]) {
			found = append(found, int32(row))
		}
	}
	return Rows{list: found}
}

const few = 256

// encodeHashes stores a column of few distinct hashes as their number, the hashes, and the index
// of each row. The number few+1 marks a column with all its hashes.
func encodeHashes(column []uint32) []byte {
	places := make(map[uint32]byte, few)
	for _, v := range column {
		if _, known := places[v]; !known && len(places) == few {
			return appendWords(nil, few+1, column)
		}
		places[v] = 0
	}
	values := slices.Sorted(maps.Keys(places))
	for i, v := range values {
		places[v] = byte(i)
	}
	p := appendWords(make([]byte, 0, 4+4*len(values)+len(column)), len(values), values)
	for _, v := range column {
		p = append(p, places[v])
	}
	return p
}

func appendWords(p []byte, number int, words []uint32) []byte {
	p = binary.LittleEndian.AppendUint32(slices.Grow(p, 4+4*len(words)), uint32(number))
	for _, v := range words {
		p = binary.LittleEndian.AppendUint32(p, v)
	}
	return p
}

func decodeHashes(p []byte, rows int) ([]uint32, error) {
	if len(p) < 4 {
		return nil, ErrDamaged
	}
	n := int(binary.LittleEndian.Uint32(p))
	if p = p[4:]; n > few {
		if len(p) != 4*rows {
			return nil, ErrDamaged
		}
		return words(p), nil
	}
	if len(p) != 4*n+rows {
		return nil, ErrDamaged
	}
	values, column := words(p[:4*n]), make([]uint32, rows)
	for row, place := range p[4*n:] {
		if int(place) >= n {
			return nil, ErrDamaged
		}
		column[row] = values[place]
	}
	return column, nil
}

func words(p []byte) []uint32 {
	list := make([]uint32, len(p)/4)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(p[4*i:])
	}
	return list
}

// encodeNumbers stores the least number, a width, and the difference of each row to the least in
// so many bytes.
func encodeNumbers(column []uint64) []byte {
	least, most := uint64(0), uint64(0)
	if len(column) > 0 {
		least, most = slices.Min(column), slices.Max(column)
	}
	width := 1 // at least, so that the file's size bounds the rows
	for rest := (most - least) >> 8; rest > 0; rest >>= 8 {
		width++
	}
	p := append(binary.LittleEndian.AppendUint64(nil, least), byte(width))
	var more [8]byte
	for _, v := range column {
		binary.LittleEndian.PutUint64(more[:], v-least)
		p = append(p, more[:width]...)
	}
	return p
}

func decodeNumbers(p []byte, rows int) ([]uint64, error) {
	if len(p) < 9 || p[8] < 1 || p[8] > 8 || len(p) != 9+rows*int(p[8]) {
		return nil, ErrDamaged
	}
	least, width := binary.LittleEndian.Uint64(p), int(p[8])
	mask := ^uint64(0) >> (64 - 8*width)
	p = append(p[9:len(p):len(p)], make([]byte, 8)...) // each row can be read as 8 bytes
	column := make([]uint64, rows)
	for row := range column {
		column[row] = least + binary.LittleEndian.Uint64(p[row*width:])&mask
	}
	return column, nil
}
