package journal

import (
	"slices"

	"github.com/toold/toold/internal/journal/columns"
)

type condition struct {
	column int
	want   []uint32
}

type between struct{ after, before int64 }

// all reports whether the whole range from least to most is within b.
func (b between) all(least, most int64) bool { return b.after < least && most < b.before }

func (p *part) between(table int, b between) columns.Rows {
	least, most := p.leastSeq, p.mostSeq
	if table == callRows {
		least, most = int64(p.least), int64(p.most)
	}
	if b.all(least, most) {
		return columns.Between(0, p.rows(table))
	}
	numbers := p.number(table, nNumber)
	return columns.Between(numbers.Search(uint64(max(b.after, 0)+1)), numbers.Search(uint64(b.before)))
}

// pick returns the rows that meet all conditions, without the changes in other chunks.
func (p *part) pick(table int, in between, all []condition) columns.Rows {
	rows := p.between(table, in)
	for _, c := range all {
		if rows.Len() == 0 {
			break
		}
		hashes := p.hash(table, c.column)
		if p.err != nil {
			return columns.Rows{}
		}
		rows = hashes.Pick(rows, c.want)
	}
	return rows
}

// holds reports whether a row meets all conditions when has replaces its hashes.
func (p *part) holds(table, row int, all []condition, has func(column int, is uint32) uint32) bool {
	for _, c := range all {
		hashes := p.hash(table, c.column)
		if p.err != nil || !slices.Contains(c.want, has(c.column, hashes.At(row))) {
			return false
		}
	}
	return true
}
