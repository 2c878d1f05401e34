// Package columns stores tables of hashes and numbers in files that are read column by column. Encoding is
// deterministic. Each column has a checksum, verified when it is read (ErrDamaged). The package does not interpret
// rows.
package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// ErrDamaged says that a file has another format or was changed.
var ErrDamaged = errors.New("it is no file of columns, or damaged")

// Table is a table in memory, stored by column.
type Table struct {
	Hashes  [][]uint32
	Numbers [][]uint64
}

// NewTable returns an empty table with the given numbers of columns.
func NewTable(hashes, numbers int) Table {
	return Table{make([][]uint32, hashes), make([][]uint64, numbers)}
}

// Len returns the number of rows.
func (t *Table) Len() int {
	if len(t.Hashes) > 0 {
		return len(t.Hashes[0])
	}
	return len(t.Numbers[0])
}

// A file consists of magic, checksum and length of the head, the head, and the columns. Integers are little-endian.
const (
	magic  = "toold-index\x01"
	headAt = len(magic) + 8

	mostBytes = 128 << 20 // larger files are considered damaged
)

// Encode encodes tables, with head as additional data.
func Encode(head []byte, tables ...Table) []byte {
	p := binary.AppendUvarint(nil, uint64(len(head)))
	p = append(p, head...)
	var blocks []byte
	add := func(block []byte) {
		p = binary.AppendUvarint(p, uint64(len(block)))
		p = binary.LittleEndian.AppendUint32(p, checksum(block))
		blocks = append(blocks, block...)
	}
	p = binary.AppendUvarint(p, uint64(len(tables)))
	for _, t := range tables {
		for _, n := range []int{len(t.Hashes), len(t.Numbers), t.Len()} {
			p = binary.AppendUvarint(p, uint64(n))
		}
		for _, c := range t.Hashes {
			add(encodeHashes(c))
		}
		for _, c := range t.Numbers {
			add(encodeNumbers(c))
		}
	}
	file := append([]byte(magic), 0, 0, 0, 0)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(p)))
	binary.LittleEndian.PutUint32(file[len(magic):], checksum(p))
	return append(append(file, p...), blocks...)
}

func checksum(p []byte) uint32 {
	return crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)) // cached by the library
}

// File is the parsed head of a file. It does not keep the file open.
type File struct {
	Head   []byte // as given to Encode
	Sum    uint32 // of the head; changes with any column
	tables []table
}

type table struct {
	rows            int
	hashes, numbers []block
}

type block struct {
	at, size int64
	sum      uint32
}

// Parse reads and verifies the head of a file of size bytes.
func Parse(r io.ReaderAt, size int64) (*File, error) {
	if size < int64(headAt) || size > mostBytes {
		return nil, ErrDamaged
	}
	p := make([]byte, min(size, 16<<10))
	if err := read(r, p, 0); err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(p[headAt-4:]))
	if string(p[:len(magic)]) != magic || length > size-int64(headAt) {
		return nil, ErrDamaged
	}
	if have := int64(len(p)); have < int64(headAt)+length {
		p = append(p, make([]byte, int64(headAt)+length-have)...)
		if err := read(r, p[have:], have); err != nil {
			return nil, err
		}
	}
	f := &File{Sum: binary.LittleEndian.Uint32(p[len(magic):])}
	p = p[headAt : int64(headAt)+length]
	if checksum(p) != f.Sum {
		return nil, ErrDamaged
	}
	return f, f.parse(p, int64(headAt)+length, size)
}

func (f *File) parse(p []byte, at, size int64) error {
	d := decoder{p: p}
	f.Head = slices.Clone(d.bytes(d.number()))
	f.tables = make([]table, min(d.number(), 16))
	for i := range f.tables {
		t := &f.tables[i]
		hashes, numbers := d.number(), d.number()
		if t.rows = d.number(); hashes > len(p) || numbers > len(p) || int64(t.rows) > size {
			return ErrDamaged
		}
		t.hashes, t.numbers = make([]block, hashes), make([]block, numbers)
		for _, list := range [][]block{t.hashes, t.numbers} {
			for c := range list {
				list[c] = block{at, int64(d.number()), d.fixed()}
				at += list[c].size
			}
		}
	}
	if d.failed || len(d.p) > 0 || at != size {
		return ErrDamaged
	}
	return nil
}

// Same reports whether a file still has the head that was parsed.
func (f *File) Same(r io.ReaderAt) bool {
	p := make([]byte, headAt)
	return read(r, p, 0) == nil && binary.LittleEndian.Uint32(p[len(magic):]) == f.Sum
}

// Rows returns the number of rows of a table.
func (f *File) Rows(table int) int { return f.tables[table].rows }

// Shape reports whether the tables have these numbers of columns: hashes and numbers of the first table, and so on.
func (f *File) Shape(columns ...int) bool {
	var have []int
	for _, t := range f.tables {
		have = append(have, len(t.hashes), len(t.numbers))
	}
	return slices.Equal(have, columns)
}

// Hashes reads and verifies a column of hashes.
func (f *File) Hashes(r io.ReaderAt, table, column int) (Hashes, error) {
	t := &f.tables[table]
	p, err := t.hashes[column].read(r)
	if err != nil {
		return Hashes{}, err
	}
	return decodeHashes(p, t.rows)
}

// Numbers reads and verifies a column of numbers.
func (f *File) Numbers(r io.ReaderAt, table, column int) (Numbers, error) {
	t := &f.tables[table]
	p, err := t.numbers[column].read(r)
	if err != nil {
		return Numbers{}, err
	}
	return decodeNumbers(p, t.rows)
}

// Table reads and verifies a whole table.
func (f *File) Table(r io.ReaderAt, table int) (Table, error) {
	t := &f.tables[table]
	all := NewTable(len(t.hashes), len(t.numbers))
	for i := range t.hashes {
		c, err := f.Hashes(r, table, i)
		if err != nil {
			return all, err
		}
		all.Hashes[i] = make([]uint32, t.rows)
		for row := range t.rows {
			all.Hashes[i][row] = c.At(row)
		}
	}
	for i := range t.numbers {
		c, err := f.Numbers(r, table, i)
		if err != nil {
			return all, err
		}
		all.Numbers[i] = make([]uint64, t.rows)
		for row := range t.rows {
			all.Numbers[i][row] = c.At(row)
		}
	}
	return all, nil
}

func (b block) read(r io.ReaderAt) ([]byte, error) {
	p := make([]byte, b.size)
	if err := read(r, p, b.at); err != nil {
		return nil, err
	}
	if checksum(p) != b.sum {
		return nil, ErrDamaged
	}
	return p, nil
}

func read(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case errors.Is(err, io.EOF):
		return ErrDamaged
	}
	return fmt.Errorf("cannot read a column: %w", err)
}

type decoder struct {
	p      []byte
	failed bool
}

func (d *decoder) number() int {
	v, n := binary.Uvarint(d.p)
	if n <= 0 || v > 1<<30 {
		d.failed = true
		return 0
	}
	d.p = d.p[n:]
	return int(v)
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.p) {
		d.failed, d.p = true, nil
		return nil
	}
	p := d.p[:n]
	d.p = d.p[n:]
	return p
}

func (d *decoder) fixed() uint32 {
	if p := d.bytes(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}
