package journal

import (
	"context"
	"math"
	"slices"

	"github.com/toold/toold/internal/journal/columns"
)

// with returns rows without those of the sorted list without, plus others.
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

// each passes the chunks, with the calls that later chunks changed, and the tail to visit, until that returns false.
// All are as they were when each was called.
func (v *view) each(ctx context.Context, ascending bool, skip func(*summary) bool, visit func(p *part, moved []Key) (bool, error)) error {
	x := v.x
	x.mu.RLock()
	chunks, last := x.chunks, (*part)(nil)
	moved := make([][]Key, len(chunks)+1) // none for the tail
	for i, c := range chunks {
		moved[i] = c.moved
	}
	if x.tail != nil && !skip(&x.tail.summary) {
		last = newPart(x, x.tail.summary)
		last.memory = x.tail.copy()
	}
	x.mu.RUnlock()
	for i := range len(moved) {
		if !ascending {
			i = len(chunks) - i
		}
		p := last
		if i < len(chunks) {
			if skip(&chunks[i].summary) {
				continue
			}
			p = v.part(chunks[i])
		}
		if p == nil {
			continue
		}
		if more, err := visit(p, moved[i]); err != nil || !more {
			return err
		}
		if p.c == nil {
			continue
		}
		v.forget(p.c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func passOn[T any](v *view, list []T, err error, ascending bool, found func(T) (bool, error)) (more bool, _ error) {
	if v.skips(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !ascending {
		slices.Reverse(list)
	}
	for _, f := range list {
		if more, err := found(f); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

type callScan struct {
	between
	since     int64 // received at or after
	static    []condition
	changing  []condition // on columns that later records change
	ascending bool
	text      *textSearch // may be nil
}

type foundCall struct {
	key   Key
	named bool // the searched text contains the name of its tool
	apart bool // some of its texts are outside the chunk
}

// calls passes to found the keys of the calls that match a query's hashes, until found returns false.
func (v *view) calls(ctx context.Context, q callScan, found func(Key) (bool, error)) error {
	if q.before == 0 {
		q.before = math.MaxInt64
	}
	return v.each(ctx, q.ascending, func(s *summary) bool {
		isOutside := int64(s.most) <= q.after || int64(s.least) >= q.before
		return s.most == 0 || isOutside || s.received < q.since
	}, func(p *part, moved []Key) (bool, error) {
		list, err := p.selectCalls(q, moved)
		if err == nil && q.text != nil && len(list) > 0 {
			list, err = q.text.choose(v, &p.summary, list)
		}
		return passOn(v, list, err, q.ascending, func(f foundCall) (bool, error) { return found(f.key) })
	})
}

func (p *part) selectCalls(q callScan, moved []Key) (list []foundCall, _ error) {
	rows := p.pick(callRows, q.between, slices.Concat(q.static, q.changing))
	if len(q.changing) > 0 && len(moved) > 0 {
		rows = p.changed(rows, q, moved)
	}
	if rows.Len() == 0 {
		return nil, p.err
	}
	numbers, received := p.number(callRows, nNumber), p.number(callRows, nReceived)
	var names, flags columns.Hashes
	if q.text != nil {
		names, flags = p.hash(callRows, cName), p.hash(callRows, cFlags)
	}
	if p.err != nil {
		return nil, p.err
	}
	for i := range rows.Len() {
		row := rows.At(i)
		if q.since != 0 && int64(received.At(row)) < q.since {
			continue
		}
		f := foundCall{key: Key(numbers.At(row))}
		if q.text != nil {
			name := names.At(row)
			f.named = q.text.names[name] && name != 1
			f.apart = name == 1 || flags.At(row)&isLarge != 0 || slices.Contains(moved, f.key)
		}
		list = append(list, f)
	}
	return list, nil
}

// changed updates a selection of rows with the changes of later chunks.
func (p *part) changed(rows columns.Rows, q callScan, moved []Key) columns.Rows {
	var all, others []int32
	for _, k := range moved {
		row := p.callRow(k)
		if row < 0 || int64(k) <= q.after || int64(k) >= q.before {
			continue
		}
		p.x.mu.RLock()
		var by change
		if m := p.x.moved[k]; m != nil {
			by = m.change
		}
		p.x.mu.RUnlock()
		all = append(all, int32(row))
		if p.holds(callRows, row, slices.Concat(q.static, q.changing), by.of) {
			others = append(others, int32(row))
		}
	}
	slices.Sort(all)
	return with(rows, all, others)
}

type foundMessage struct {
	place
	seq int64
}

type messageScan struct {
	between
	conditions []condition
	ascending  bool
	workspace  string
}

// messages passes to found the positions of the messages that match a query's hashes, until found returns false.
func (v *view) messages(ctx context.Context, q messageScan, found func(foundMessage) (bool, error)) error {
	return v.each(ctx, q.ascending, func(s *summary) bool {
		return s.mostSeq == 0 || s.mostSeq <= q.after || s.leastSeq >= q.before
	}, func(p *part, _ []Key) (bool, error) {
		list, err := p.selectMessages(v, q)
		return passOn(v, list, err, q.ascending, found)
	})
}

func (p *part) selectMessages(v *view, q messageScan) ([]foundMessage, error) {
	rows := p.pick(messageRows, q.between, q.conditions)
	apart, matching, err := p.apartMessages(v, q)
	if err != nil {
		return nil, err
	}
	rows = with(rows, apart, matching)
	if rows.Len() == 0 {
		return nil, p.err
	}
	at, numbers := p.number(messageRows, nAt), p.number(messageRows, nNumber)
	if p.err != nil {
		return nil, p.err
	}
	list := make([]foundMessage, rows.Len())
	for i := range list {
		row := rows.At(i)
		list[i] = foundMessage{place{p.first.Segment, int64(at.At(row))}, int64(numbers.At(row))}
	}
	return list, nil
}

// apartMessages returns the sorted rows of messages whose calls are in other chunks, and those among them that match.
func (p *part) apartMessages(v *view, q messageScan) (apart, matching []int32, _ error) {
	single := func(row int64, of func(column int, is uint32) uint32) {
		if !q.all(p.leastSeq, p.mostSeq) {
			numbers := p.number(messageRows, nNumber)
			if p.err != nil {
				return
			}
			if seq := int64(numbers.At(int(row))); !q.all(seq, seq) {
				return
			}
		}
		apart = append(apart, int32(row))
		if p.holds(messageRows, int(row), q.conditions, of) {
			matching = append(matching, int32(row))
		}
	}
	for _, f := range p.foreign {
		if f.row == 0 {
			continue
		}
		of, err := v.origin(Key(f.key))
		if err != nil && !v.skips(err) {
			return nil, nil, err
		}
		single(f.row-1, func(column int, is uint32) uint32 {
			if column >= mClient {
				return of[column-mClient]
			}
			return is
		})
		if of == (origin{}) && len(matching) > 0 && matching[len(matching)-1] == int32(f.row-1) {
			matching = matching[:len(matching)-1] // its call was removed
		}
	}
	if q.workspace != "" {
		for _, row := range p.loose {
			single(row, func(column int, is uint32) uint32 { return v.elsewhere(column, is, q) })
		}
	}
	slices.Sort(apart)
	return apart, matching, nil
}

// elsewhere lets every workspace match: the call is in another chunk, and fits checks the message later.
func (v *view) elsewhere(column int, is uint32, q messageScan) uint32 {
	if column == mWorkspace {
		return v.x.hash.of(q.workspace)
	}
	return is
}
