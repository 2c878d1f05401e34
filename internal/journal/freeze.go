package journal

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/columns"
)

// copy returns a tail whose columns do not change while t grows.
func (t *tail) copy() *tail {
	f := *t
	f.messages.Hashes, f.messages.Numbers = slices.Clone(t.messages.Hashes), slices.Clone(t.messages.Numbers)
	f.calls.Hashes, f.calls.Numbers = slices.Clone(t.calls.Hashes), slices.Clone(t.calls.Numbers)
	for _, c := range []int{cTool, cAction, cBy, cFlags} { // only these columns change in place
		f.calls.Hashes[c] = slices.Clone(t.calls.Hashes[c])
	}
	f.rows, f.places, f.events = nil, nil, nil
	return &f
}

func (t *tail) freeze() *tail {
	f := t.copy()
	f.rows, f.events = t.rows, t.events
	f.seal()
	return f
}

// seal completes a tail: it lists the open calls, and the records of each call in order. Nothing can be added to a
// sealed tail.
func (t *tail) seal() {
	t.open = nil
	ends := make([]uint64, t.calls.Len())
	flat := make([]uint64, len(t.events))
	calls := make([]*tailCall, t.calls.Len())
	for _, c := range t.rows {
		calls[c.row] = c
	}
	n := 0
	for row, c := range calls {
		begin := n
		for last := c.last; last > 0; last = t.events[last-1].before {
			flat[n] = uint64(t.events[last-1].at)
			n++
		}
		slices.Reverse(flat[begin:n])
		if ends[row] = uint64(n); t.calls.Hashes[cFlags][row]&hasEnded == 0 {
			t.open = append(t.open, int64(t.calls.Numbers[nNumber][row]))
		}
	}
	t.calls.Numbers[nEvents] = ends
	t.flat = columns.Table{Numbers: [][]uint64{flat}}
	t.rows, t.places, t.events = nil, nil, nil
}

func (t *tail) encode() ([]byte, error) {
	s := t.summary // encoding overwrites fields
	s.foreign, s.earlyCancels = slices.Clone(s.foreign), slices.Clone(s.earlyCancels)
	head, err := encode(&s, nil)
	if err != nil {
		return nil, err
	}
	return columns.Encode(head, t.messages, t.calls, t.flat), nil
}

func parseChunk(r io.ReaderAt, size int64) (s summary, f *columns.File, err error) {
	if f, err = columns.Parse(r, size); err != nil {
		return s, nil, err
	}
	if !f.Shape(messageHashes, messageNumbers, callHashes, callNumbers, 0, 1) {
		return s, nil, columns.ErrDamaged
	}
	if err := decode(f.Head, &s, nil); err != nil || !s.within(int64(f.Rows(messageRows))) {
		return s, nil, columns.ErrDamaged
	}
	return s, f, nil
}

// within reports whether all message rows that s refers to are below rows.
func (s *summary) within(rows int64) bool {
	return !slices.ContainsFunc(s.loose, func(row int64) bool { return row < 0 || row >= rows }) &&
		!slices.ContainsFunc(s.foreign, func(f foreign) bool { return f.row < 0 || f.row > rows })
}

// resume returns a growing tail from the chunk in a file.
func resume(hash hasher, s summary, f *columns.File, r io.ReaderAt) (*tail, error) {
	t := newTail(hash, 1)
	t.summary = s
	flat := columns.Table{}
	for i, table := range []*columns.Table{&t.messages, &t.calls, &flat} {
		var err error
		if *table, err = f.Table(r, i); err != nil {
			return nil, err
		}
	}
	requests := map[uint64]int{} // row of the first message of each record
	for row, at := range t.messages.Numbers[nAt] {
		if _, is := requests[at]; !is {
			requests[at] = row
		}
	}
	begin := uint64(0)
	for row, key := range t.calls.Numbers[nNumber] {
		request, is := requests[t.calls.Numbers[nAt][row]]
		end := t.calls.Numbers[nEvents][row]
		inRange := begin <= end && end <= uint64(len(flat.Numbers[0]))
		if !is || !inRange || t.rows[Key(key)] != nil {
			return nil, columns.ErrDamaged
		}
		c := &tailCall{row: row, request: request}
		for _, at := range flat.Numbers[0][begin:end] {
			t.events = append(t.events, callRecord{int64(at), c.last})
			c.last = len(t.events)
		}
		begin = end
		t.rows[Key(key)] = c
		t.places[t.soughtAt(row)] = t.calls.Hashes[cWorkspace][row]
	}
	t.calls.Numbers[nEvents] = nil
	return t, nil
}

// rebuild rebuilds a chunk with an unusable file from the log.
func (x *index) rebuild(c *chunk) (*tail, error) {
	log := chain.NewReader(x.log)
	defer log.Close()
	t, before := newTail(x.hash, x.records), c.before
	err := log.Each(c.first.Segment, c.first.Offset, c.last.Number, func(rec chain.Record) error {
		if rec.Before != before {
			return errForeign
		}
		before = sha256.Sum256(rec.Text)
		rec.Hash = before
		if newEvent(rec.Kind) == nil {
			return nil
		}
		e, err := decodeRecord(rec, x.texts)
		if err == nil {
			t.add(taken{e, rec.Mark, rec.Before, rec.Time})
		}
		return err
	})
	if err == nil && (t.first != c.first || t.last != c.last) {
		err = chain.ErrNoMark
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make %s of the journal's index again: %w", c.name, err)
	}
	t.seal()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memory = t
	return t, nil
}
