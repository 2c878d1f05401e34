package journal

import (
	"context"
	"math"
	"slices"

	"github.com/toold/toold/internal/journal/columns"
)

// with returns rows without some and with others.
func with(rows columns.Rows, without, others []int32) columns.Rows {
	if len(without) == 0 {
		return rows
	}
	list := make([]int32, 0, rows.Len()+len(others))
	for i := range rows.Len() {
		row := int32(rows.At(i))
		if _, is := slices.BinarySearch(without, row); !is {
			list = append(list, row)
		}
	}
	list = append(list, others...)
	slices.Sort(list)
	return columns.List(list)
}

// each passes on the chunks and the tail, as it was at first, until one of them returns false.
func (v *view) each(ctx context.Context, ascending bool, skip func(*summary) bool, chunk func(c *chunk, moved []Key) (bool, error), tail func(p *part) func() (bool, error)) error {
	x := v.x
	x.mu.RLock()
	chunks := x.chunks
	lists := make([][]Key, len(chunks))
	for i, c := range chunks {
		lists[i] = c.moved
	}
	last := func() (bool, error) { return true, nil }
	if x.tail != nil && !skip(&x.tail.summary) {
		p := newPart(x, x.tail.summary)
		p.memory = x.tail
		last = tail(p)
	}
	x.mu.RUnlock()
	if !ascending {
		if more, err := last(); err != nil || !more {
			return err
		}
	}
	for n := range chunks {
		i := n
		if !ascending {
			i = len(chunks) - 1 - n
		}
		if skip(&chunks[i].summary) {
			continue
		}
		if more, err := chunk(chunks[i], lists[i]); err != nil || !more {
			return err
		}
		v.forget(chunks[i])
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if ascending {
		_, err := last()
		return err
	}
	return nil
}

// callScan is a query of calls.
type callScan struct {
	between
	since     int64 // received then or later
	static    []condition
	changing  []condition // of columns that later records change
	ascending bool
	text      *textSearch // may be nil
}

// foundCall is a call that matches a query's hashes.
type foundCall struct {
	key   Key
	named bool // the searched text contains the tool's name
	apart bool // some of its texts are outside its chunk
}

// calls passes on the keys of the calls that match a query's hashes until found returns false.
func (v *view) calls(ctx context.Context, q callScan, found func(Key) (bool, error)) error {
	if q.before == 0 {
		q.before = math.MaxInt64
	}
	pass := func(c *summary, list []foundCall, err error) (bool, error) {
		if err == nil && q.text != nil && len(list) > 0 {
			list, err = q.text.choose(v, c, list)
		}
		if v.passes(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if !q.ascending {
			slices.Reverse(list)
		}
		for _, f := range list {
			if more, err := found(f.key); err != nil || !more {
				return false, err
			}
		}
		return true, nil
	}
	return v.each(ctx, q.ascending, func(s *summary) bool {
		return s.most == 0 || int64(s.most) <= q.after || int64(s.least) >= q.before || s.received < q.since
	}, func(c *chunk, moved []Key) (bool, error) {
		list, err := v.part(c).selectCalls(q, moved)
		return pass(&c.summary, list, err)
	}, func(p *part) func() (bool, error) {
		c := p.memory.summary
		list, err := p.selectCalls(q, nil)
		return func() (bool, error) { return pass(&c, list, err) }
	})
}

// selectCalls returns the matching calls of a chunk in order.
func (p *part) selectCalls(q callScan, moved []Key) ([]foundCall, error) {
	rows, err := p.pick(callRows, q.between, slices.Concat(q.static, q.changing))
	if err != nil {
		return nil, err
	}
	if len(q.changing) > 0 && len(moved) > 0 {
		if rows, err = p.changed(rows, q, moved); err != nil {
			return nil, err
		}
	}
	if rows.Len() == 0 {
		return nil, nil
	}
	numbers, err := p.number(callRows, nNumber)
	if err != nil {
		return nil, err
	}
	received, err := p.number(callRows, nReceived)
	if err != nil {
		return nil, err
	}
	list := make([]foundCall, 0, rows.Len())
	for i := range rows.Len() {
		if row := rows.At(i); q.since == 0 || int64(received.At(row)) >= q.since {
			list = append(list, foundCall{key: Key(numbers.At(row))})
			if q.text != nil {
				if err := p.about(row, q.text, moved, &list[len(list)-1]); err != nil {
					return nil, err
				}
			}
		}
	}
	return list, nil
}

// about fills in what a text search needs.
func (p *part) about(row int, s *textSearch, moved []Key, f *foundCall) error {
	name, err := p.hash(callRows, cName)
	if err != nil {
		return err
	}
	is, err := p.hash(callRows, cFlags)
	if err != nil {
		return err
	}
	hash := name.At(row)
	f.named = s.names[hash] && hash != 1
	f.apart = hash == 1 || is.At(row)&isLarge != 0 || slices.Contains(moved, f.key)
	return nil
}

// changed corrects selected rows by what later chunks have changed.
func (p *part) changed(rows columns.Rows, q callScan, moved []Key) (columns.Rows, error) {
	var all, others []int32
	for _, k := range moved {
		if int64(k) <= q.after || int64(k) >= q.before {
			continue
		}
		row, err := p.callRow(k)
		if err != nil {
			return rows, err
		}
		if row < 0 {
			continue
		}
		p.x.mu.RLock()
		var by change
		if m := p.x.moved[k]; m != nil {
			by = m.change
		}
		p.x.mu.RUnlock()
		all = append(all, int32(row))
		is, err := p.holds(callRows, row, slices.Concat(q.static, q.changing), by.of)
		if err != nil {
			return rows, err
		}
		if is {
			others = append(others, int32(row))
		}
	}
	slices.Sort(all)
	return with(rows, all, others), nil
}

// foundMessage locates a message.
type foundMessage struct {
	place
	seq int64
}

// messageScan is a query of messages.
type messageScan struct {
	between
	conditions []condition
	ascending  bool
	workspace  string // of the call
}

// messages passes on the positions of the messages that match a query's hashes until found returns
// false.
func (v *view) messages(ctx context.Context, q messageScan, found func(foundMessage) (bool, error)) error {
	pass := func(p *part) (bool, error) {
		list, err := p.selectMessages(v, q)
		if v.passes(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if !q.ascending {
			slices.Reverse(list)
		}
		for _, m := range list {
			if more, err := found(m); err != nil || !more {
				return false, err
			}
		}
		return true, nil
	}
	return v.each(ctx, q.ascending, func(s *summary) bool {
		return s.mostSeq == 0 || s.mostSeq <= q.after || s.leastSeq >= q.before
	}, func(c *chunk, _ []Key) (bool, error) {
		return pass(v.part(c))
	}, func(p *part) func() (bool, error) {
		frozen := p.memory.freezeMessages()
		return func() (bool, error) {
			p.memory = frozen
			return pass(p)
		}
	})
}

// freezeMessages copies the messages of a tail, whose columns only grow.
func (t *tail) freezeMessages() *tail {
	f := &tail{summary: t.summary}
	f.messages = columns.Table{Hashes: slices.Clone(t.messages.Hashes), Numbers: slices.Clone(t.messages.Numbers)}
	return f
}

// selectMessages returns the matching messages of a chunk in order.
func (p *part) selectMessages(v *view, q messageScan) ([]foundMessage, error) {
	rows, err := p.pick(messageRows, q.between, q.conditions)
	if err != nil {
		return nil, err
	}
	var apart, others []int32
	single := func(row int64, of func(column int, is uint32) uint32) error {
		if !q.all(p.leastSeq, p.mostSeq) {
			numbers, err := p.number(messageRows, nNumber)
			if err != nil {
				return err
			}
			if seq := int64(numbers.At(int(row))); !q.all(seq, seq) {
				return nil
			}
		}
		apart = append(apart, int32(row))
		is, err := p.holds(messageRows, int(row), q.conditions, of)
		if is {
			others = append(others, int32(row))
		}
		return err
	}
	for _, f := range p.foreign {
		if f.row == 0 {
			continue
		}
		of, err := v.origin(Key(f.key))
		if err != nil && !v.passes(err) {
			return nil, err
		}
		err = single(f.row-1, func(column int, is uint32) uint32 {
			if column >= mClient {
				return of[column-mClient]
			}
			return is
		})
		if err != nil {
			return nil, err
		}
		if of == (origin{}) && len(others) > 0 && others[len(others)-1] == int32(f.row-1) {
			others = others[:len(others)-1] // its call was removed
		}
	}
	if q.workspace != "" {
		for _, row := range p.loose {
			if err := single(row, func(column int, is uint32) uint32 { return v.elsewhere(column, is, q) }); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(apart)
	rows = with(rows, apart, others)
	if rows.Len() == 0 {
		return nil, nil
	}
	at, err := p.number(messageRows, nAt)
	if err != nil {
		return nil, err
	}
	numbers, err := p.number(messageRows, nNumber)
	if err != nil {
		return nil, err
	}
	list := make([]foundMessage, rows.Len())
	for i := range list {
		row := rows.At(i)
		list[i] = foundMessage{place{p.first.Segment, int64(at.At(row))}, int64(numbers.At(row))}
	}
	return list, nil
}

// elsewhere matches any workspace: the call is in another chunk, and the record is checked later.
func (v *view) elsewhere(column int, is uint32, q messageScan) uint32 {
	if column == mWorkspace {
		return v.x.hash.of(q.workspace)
	}
	return is
}
