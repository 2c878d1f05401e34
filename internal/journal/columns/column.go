package columns

import (
	"encoding/binary"
	"maps"
	"slices"
	"sort"
)

// Rows is a sorted selection of rows of a table.
type Rows struct {
	low, high int // range, if list is nil
	list      []int32
}

// Between returns the rows from low up to but excluding high.
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

// Hashes is a column of hashes.
type Hashes struct {
	plain []uint32
	many  []byte // encoded, 4 bytes each
	// Few distinct hashes are stored as indexes into values.
	values []uint32
	places []byte
}

// Plain returns a column of hashes. The slice must not change while the column is used.
func Plain(hashes []uint32) Hashes { return Hashes{plain: hashes} }

const few = 256

// encodeHashes encodes few distinct hashes: their number, the sorted hashes of 4 bytes each, and for each row the
// index of its hash in one byte.
func encodeHashes(c []uint32) []byte {
	places := make(map[uint32]byte, few)
	for _, v := range c {
		if _, known := places[v]; !known && len(places) == few {
			return encodePlain(c)
		}
		places[v] = 0
	}
	values := slices.Sorted(maps.Keys(places))
	p := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+4*len(values)+len(c)), uint32(len(values)))
	for i, v := range values {
		places[v] = byte(i)
		p = binary.LittleEndian.AppendUint32(p, v)
	}
	for _, v := range c {
		p = append(p, places[v])
	}
	return p
}

// encodePlain encodes many distinct hashes: few+1 to mark the format, and 4 bytes for each row.
func encodePlain(c []uint32) []byte {
	p := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+4*len(c)), few+1)
	for _, v := range c {
		p = binary.LittleEndian.AppendUint32(p, v)
	}
	return p
}

func decodeHashes(p []byte, rows int) (c Hashes, err error) {
	if len(p) < 4 {
		return c, ErrDamaged
	}
	n := int(binary.LittleEndian.Uint32(p))
	if p = p[4:]; n > few {
		if len(p) != 4*rows {
			return c, ErrDamaged
		}
		c.many = p
		return c, nil
	}
	if len(p) != 4*n+rows {
		return c, ErrDamaged
	}
	c.values, c.places = decodeWords(p[:4*n]), p[4*n:]
	for _, place := range c.places {
		if int(place) >= n {
			return c, ErrDamaged
		}
	}
	return c, nil
}

func word(p []byte, i int) uint32 { return binary.LittleEndian.Uint32(p[4*i:]) }

func decodeWords(p []byte) []uint32 {
	words := make([]uint32, len(p)/4)
	for i := range words {
		words[i] = word(p, i)
	}
	return words
}

// At returns the hash of a row.
func (c *Hashes) At(row int) uint32 {
	switch {
	case c.places != nil:
		return c.values[c.places[row]]
	case c.many != nil:
		return word(c.many, row)
	}
	return c.plain[row]
}

// Pick returns the rows of in whose hash is one of want.
func (c *Hashes) Pick(in Rows, want []uint32) Rows {
	switch {
	case c.many != nil:
		return pickMany(c.many, in, want)
	case c.places == nil:
		return pick(c.plain, in, want)
	}
	var places []byte
	for _, w := range want {
		if at, found := slices.BinarySearch(c.values, w); found {
			places = append(places, byte(at))
		}
	}
	return pick(c.places, in, places)
}

func pick[T byte | uint32](column []T, in Rows, want []T) Rows {
	found := make([]int32, 0, in.Len()/8)
	switch {
	case len(want) == 0:
	case in.list == nil && len(want) == 1: // the most frequent case, without a function call for each row
		w := want[0]
		for i, v := range column[in.low:in.high] {
			if v == w {
				found = append(found, int32(in.low+i))
			}
		}
	default:
		for i := range in.Len() {
			if row := in.At(i); slices.Contains(want, column[row]) {
				found = append(found, int32(row))
			}
		}
	}
	return Rows{list: found}
}

// pickMany is pick for an encoded column. It does not decode the whole column.
func pickMany(column []byte, in Rows, want []uint32) Rows {
	found := []int32{}
	if in.list == nil && len(want) == 1 {
		w := want[0]
		for p, row := column[4*in.low:4*in.high], int32(in.low); len(p) >= 4; p, row = p[4:], row+1 {
			if binary.LittleEndian.Uint32(p) == w {
				found = append(found, row)
			}
		}
		return Rows{list: found}
	}
	for i := range in.Len() {
		if row := in.At(i); slices.Contains(want, word(column, row)) {
			found = append(found, int32(row))
		}
	}
	return Rows{list: found}
}

// Numbers is a column of numbers.
type Numbers struct {
	plain []uint64
	// Encoded: the difference from the least number, in width bytes each.
	least uint64
	width int
	more  []byte
	rows  int
}

// PlainNumbers returns a column of numbers. The slice must not change while the column is used.
func PlainNumbers(numbers []uint64) Numbers { return Numbers{plain: numbers, rows: len(numbers)} }

// encodeNumbers encodes the least number in 8 bytes, the width in one, and each row's difference from the least number
// in width bytes.
func encodeNumbers(c []uint64) []byte {
	least, most := uint64(0), uint64(0)
	if len(c) > 0 {
		least, most = slices.Min(c), slices.Max(c)
	}
	width := 1 // at least 1, so that the file's size limits the number of rows
	for rest := (most - least) >> 8; rest > 0; rest >>= 8 {
		width++
	}
	p := append(binary.LittleEndian.AppendUint64(nil, least), byte(width))
	var more [8]byte
	for _, v := range c {
		binary.LittleEndian.PutUint64(more[:], v-least)
		p = append(p, more[:width]...)
	}
	return p
}

func decodeNumbers(p []byte, rows int) (c Numbers, err error) {
	if len(p) < 9 {
		return c, ErrDamaged
	}
	width := int(p[8])
	if width < 1 || width > 8 || len(p) != 9+rows*width {
		return c, ErrDamaged
	}
	return Numbers{least: binary.LittleEndian.Uint64(p), width: width, more: p[9:], rows: rows}, nil
}

// Len returns the number of rows.
func (c *Numbers) Len() int { return c.rows }

// At returns the number of a row.
func (c *Numbers) At(row int) uint64 {
	if c.plain != nil {
		return c.plain[row]
	}
	v := uint64(0)
	for _, b := range slices.Backward(c.more[row*c.width : (row+1)*c.width]) {
		v = v<<8 | uint64(b)
	}
	return c.least + v
}

// Search returns the first row whose number is at least number, in a sorted column.
func (c *Numbers) Search(number uint64) int {
	return sort.Search(c.rows, func(i int) bool { return c.At(i) >= number })
}
