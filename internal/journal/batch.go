package journal

import "github.com/toold/toold/internal/journal/chain"

type batch struct {
	table *table
	log   *chain.Batch // nil before begin
	taken []taken
	body  codec // reused for each record

	replace func(string) string // masks configured texts; may be nil
}

func (b *batch) begin(t *table, log *chain.Batch) { b.table, b.log, b.body.blobs = t, log, log }

// may returns an error if e must not follow the recorded events of its call.
func (b *batch) may(e event) error {
	k := callOf(e)
	if k == 0 {
		return nil
	}
	known, err := b.table.recall(k)
	switch {
	case err != nil:
		return err
	case known == nil:
		return ErrNotFound
	}
	return may(known, e)
}

func (b *batch) append(kind byte, e event) error {
	if err := b.may(e); err != nil {
		return err
	}
	redacted(e, b.replace)
	b.body.p, b.body.err = b.body.p[:0], nil
	if e.fields(&b.body); b.body.err != nil {
		return b.body.err
	}
	before := b.log.Last().Hash
	mark, err := b.log.Append(kind, b.body.p)
	if err == nil {
		b.taken = append(b.taken, taken{e, mark, before, b.log.Time()})
		b.table.apply(e, mark.Number, b.log.Time())
	}
	return err
}

func (b *batch) end() {
	clear(b.taken)
	b.log, b.body.blobs, b.taken = nil, nil, b.taken[:0]
	if cap(b.body.p) > inRecord {
		b.body.p = nil
	}
}
