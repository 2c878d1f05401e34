package journal

import (
	"slices"

	"github.com/toold/toold/internal/journal/columns"
)

// condition is that a column has one of some hashes.
type condition struct {
	column int
	want   []uint32
}

// between is an exclusive range of numbers.
type between struct{ after, before int64 }

// all reports whether the range contains least to most.
func (b between) all(least, most int64) bool { return b.after < least && most < b.before }

// between returns the rows of a table in a range of numbers.
func (p *part) between(table int, b between) (columns.Rows, error) {
	least, most := p.leastSeq, p.mostSeq
	if table == callRows {
		least, most = int64(p.least), int64(p.most)
	}
	if b.all(least, most) {
		return columns.Between(0, p.rows(table)), nil
	}
	c, err := p.number(table, nNumber)
	if err != nil {
		return columns.Rows{}, err
	}
	return columns.Between(c.Search(uint64(max(b.after, 0)+1)), c.Search(uint64(b.before))), nil
}

// pick returns the rows that fulfil conditions, ignoring other chunks.
func (p *part) pick(table int, in between, all []condition) (columns.Rows, error) {
	rows, err := p.between(table, in)
	if err != nil {
		return rows, err
	}
	for _, c := range all {
		if rows.Len() == 0 {
			break
		}
		h, err := p.hash(table, c.column)
		if err != nil {
			return rows, err
		}
		rows = h.Pick(rows, c.want)
	}
	return rows, nil
}

// holds reports whether a row fulfils conditions, with the hashes that has substitutes.
func (p *part) holds(table, row int, all []condition, has func(column int, is uint32) uint32) (bool, error) {
	for _, c := range all {
		h, err := p.hash(table, c.column)
		if err != nil {
			return false, err
		}
		if !slices.Contains(c.want, has(c.column, h.At(row))) {
			return false, nil
		}
	}
	return true, nil
}
