package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync/atomic"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/columns"
)

// view reads the journal for one query, in one goroutine, which closes it.
type view struct {
	x      *index
	parts  map[*chunk]*part
	log    *chain.Reader
	newest *newest // from the index; may be nil

	lenient bool  // skip unreadable records
	skipped error // why the first of them could not be read
	missing error // why texts of the last event were replaced by lostBody; nil: none were
}

func (x *index) view() *view {
	v := &view{x: x, parts: map[*chunk]*part{}, log: chain.NewReader(x.log)}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if v.newest = x.newest; v.newest != nil {
		v.newest.users.Add(1)
		v.log.Lend(v.newest.segment, v.newest.file)
	}
	return v
}

func (v *view) close() {
	v.log.Close()
	v.newest.release()
	for _, p := range v.parts {
		p.close()
	}
}

// newest is the current segment. It is kept open so that it can be read even if its file is moved. The last user
// closes it.
type newest struct {
	segment uint32
	file    chain.File
	users   atomic.Int32
}

func (n *newest) release() {
	if n != nil && n.users.Add(-1) == 0 {
		_ = n.file.Close() // only read
	}
}

// openNewest opens a segment as the newest. The caller holds x.mu.
func (x *index) openNewest(segment uint32) {
	if segment == 0 || x.newest != nil && x.newest.segment == segment {
		return
	}
	x.newest.release()
	x.newest = nil
	if f, err := chain.OpenSegment(x.log, segment); err == nil {
		x.newest = &newest{segment: segment, file: f}
		x.newest.users.Add(1)
	}
}

// part is a chunk or the tail, with the columns that a query has read.
type part struct {
	summary
	x       *index
	c       *chunk // nil = the tail
	memory  *tail
	file    *columns.File
	open    chain.File // nil while closed
	hashes  map[[2]int]columns.Hashes
	numbers map[[2]int]columns.Numbers
	err     error // why a column could not be read
}

func (v *view) part(c *chunk) *part {
	if p := v.parts[c]; p != nil {
		return p
	}
	p := newPart(v.x, c.summary)
	p.c = c
	c.mu.Lock()
	p.memory, p.file = c.memory, c.file
	c.mu.Unlock()
	v.parts[c] = p
	return p
}

func newPart(x *index, s summary) *part {
	return &part{summary: s, x: x, hashes: map[[2]int]columns.Hashes{}, numbers: map[[2]int]columns.Numbers{}}
}

// forget releases the columns of a chunk that a query has read.
func (v *view) forget(c *chunk) {
	v.part(c).close()
	delete(v.parts, c)
}

func (p *part) close() {
	if p.open != nil {
		_ = p.open.Close() // only read
		p.open = nil
	}
}

func (p *part) rows(table int) int {
	if p.memory == nil {
		return p.file.Rows(table)
	}
	return p.memory.tables()[table].Len()
}

func (p *part) hash(table, column int) columns.Hashes {
	return load(p, p.hashes, table, column, func(t *columns.Table) columns.Hashes { return columns.Plain(t.Hashes[column]) }, p.file.Hashes)
}

func (p *part) number(table, column int) columns.Numbers {
	return load(p, p.numbers, table, column, func(t *columns.Table) columns.Numbers { return columns.PlainNumbers(t.Numbers[column]) }, p.file.Numbers)
}

// load returns a column from memory or from the file. If the file is unusable, it rebuilds the chunk. On failure it
// sets p.err and returns an empty column.
func load[T any](p *part, loaded map[[2]int]T, table, column int, memory func(*columns.Table) T, file func(r io.ReaderAt, table, column int) (T, error)) (values T) {
	at := [2]int{table, column}
	if known, is := loaded[at]; is || p.err != nil {
		return known
	}
	if p.memory == nil {
		err := p.openFile()
		if err == nil {
			values, err = file(p.open, table, column)
		}
		if err == nil {
			loaded[at] = values
			return values
		}
		if p.memory, p.err = p.x.rebuild(p.c); p.err != nil {
			return values
		}
	}
	loaded[at] = memory(p.memory.tables()[table])
	return loaded[at]
}

// openFile opens the file of a chunk. The error is columns.ErrDamaged if it is missing or another one.
func (p *part) openFile() error {
	if p.open != nil {
		return nil
	}
	f, err := p.x.dir.Open(p.c.name)
	if errors.Is(err, fs.ErrNotExist) {
		return columns.ErrDamaged
	}
	if err != nil {
		return fmt.Errorf("cannot open the index of the journal: %w", err)
	}
	if p.open = f; !p.file.Same(f) {
		p.close()
		return columns.ErrDamaged
	}
	return nil
}

// place is the position of a record in the log.
type place struct {
	segment uint32
	at      int64
}

// places returns the positions of a call's records in order; none if the call is unknown.
func (v *view) places(k Key) ([]place, error) {
	v.x.mu.RLock()
	if t := v.x.tail; t != nil && t.rows[k] != nil {
		defer v.x.mu.RUnlock()
		return t.placesOf(t.rows[k]), nil
	}
	c, list := v.x.home(k), []place(nil)
	if m := v.x.moved[k]; m != nil {
		list = m.places
	}
	v.x.mu.RUnlock()
	if c == nil {
		return nil, nil
	}
	p := v.part(c)
	row := p.callRow(k)
	if row < 0 {
		return nil, p.err
	}
	at, ends, events := p.number(callRows, nAt), p.number(callRows, nEvents), p.number(eventRows, 0)
	if p.err != nil {
		return nil, p.err
	}
	all := []place{{c.first.Segment, int64(at.At(row))}}
	begin := uint64(0)
	if row > 0 {
		begin = ends.At(row - 1)
	}
	if ends.At(row) > uint64(events.Len()) {
		return nil, columns.ErrDamaged
	}
	for i := begin; i < ends.At(row); i++ {
		all = append(all, place{c.first.Segment, int64(events.At(int(i)))})
	}
	return append(all, list...), nil
}

func (t *tail) placesOf(c *tailCall) (all []place) {
	for last := c.last; last > 0; last = t.events[last-1].before {
		all = append(all, place{t.first.Segment, t.events[last-1].at})
	}
	all = append(all, place{t.first.Segment, int64(t.calls.Numbers[nAt][c.row])})
	slices.Reverse(all)
	return all
}

// callRow returns the row of a call, or -1. It is -1 also on failure, which sets p.err.
func (p *part) callRow(k Key) int {
	keys := p.number(callRows, nNumber)
	if row := keys.Search(uint64(k)); row < keys.Len() && Key(keys.At(row)) == k {
		return row
	}
	return -1
}

// origin returns the hashes that a message takes from its call in another chunk, or zeros if that chunk was removed.
func (v *view) origin(k Key) (origin, error) {
	v.x.mu.RLock()
	of, known := v.x.origin[k]
	c := v.x.home(k)
	v.x.mu.RUnlock()
	if known || c == nil {
		return of, nil
	}
	p := v.part(c)
	row := p.callRow(k)
	if row < 0 {
		return of, p.err
	}
	at, messages := p.number(callRows, nAt), p.number(messageRows, nAt)
	if p.err != nil {
		return of, p.err
	}
	request := messages.Search(at.At(row))
	if request == messages.Len() {
		return of, columns.ErrDamaged
	}
	for i := range of {
		hashes := p.hash(messageRows, mClient+i)
		if p.err != nil {
			return origin{}, p.err
		}
		of[i] = hashes.At(request)
	}
	v.x.mu.Lock()
	defer v.x.mu.Unlock()
	if v.x.home(k) == c {
		v.x.origin[k] = of
	}
	return of, nil
}

// record assembles a call, including Arguments, from its records, or returns ErrNotFound.
func (v *view) record(k Key) (Record, error) {
	places, err := v.places(k)
	if err != nil {
		return Record{}, err
	}
	t := newTable()
	var arguments []byte
	var lost error
	for _, p := range places {
		e, rec, err := v.event(p)
		if err != nil {
			return Record{}, err
		}
		lost = cmp.Or(lost, v.missing)
		of := callOf(e)
		if call, is := e.(*callEvent); is {
			of, arguments = Key(call.key), call.call.Arguments
		}
		if of != k {
			return Record{}, v.mismatch(p)
		}
		t.apply(e, rec.Number, rec.Time)
	}
	known := t.calls[k]
	switch {
	case known == nil && len(places) > 0:
		return Record{}, v.mismatch(places[0])
	case known == nil:
		return Record{}, ErrNotFound
	}
	known.Arguments, known.Lost = arguments, lost
	return known.Record, nil
}

// event reads a record. The error is ErrNotFound only if the index knows that the record was removed.
func (v *view) event(p place) (e event, rec chain.Record, err error) {
	v.missing = nil
	if rec, err = v.log.Record(p.segment, p.at); err == nil {
		e, err = decodeRecord(rec, texts{dir: v.x.log, lost: func(err error) {
			v.missing = tampered("a text of record number %d is lost: %v", rec.Number, err)
		}})
	}
	if errors.Is(err, chain.ErrNoMark) && int64(p.segment) < v.x.begin() {
		err = ErrNotFound
	}
	return e, rec, err
}

// skips reports whether a query continues after err: the record was removed, or the view is lenient.
func (v *view) skips(err error) bool {
	if err == nil || errors.Is(err, ErrNotFound) {
		return err != nil
	}
	if v.lenient {
		v.skipped = cmp.Or(v.skipped, err)
	}
	return v.lenient
}

func (v *view) mismatch(p place) error {
	return fmt.Errorf("segment %d of the log has another record at byte %d than the index says; look at it with `toold audit verify`", p.segment, p.at)
}

// callEvent reads the first record of a call: the request.
func (v *view) callEvent(k Key) (*callEvent, error) {
	places, err := v.places(k)
	if err == nil && len(places) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	e, _, err := v.event(places[0])
	call, is := e.(*callEvent)
	if err == nil && (!is || Key(call.key) != k) {
		err = v.mismatch(places[0])
	}
	return call, err
}

func (x *index) find(ctx context.Context, column int, hash uint32, fits func(*Call) bool) (Record, error) {
	v := x.view()
	defer v.close()
	return v.find(ctx, column, hash, fits)
}

// find returns the first call that fits among those with a hash in a column, or ErrNotFound.
func (v *view) find(ctx context.Context, column int, hash uint32, fits func(*Call) bool) (r Record, err error) {
	found := false
	err = v.calls(ctx, callScan{static: []condition{{column, []uint32{hash}}}}, func(k Key) (bool, error) {
		e, err := v.callEvent(k)
		if err == nil && fits(&e.call) {
			r, err = v.record(k)
			found = err == nil
		}
		if errors.Is(err, ErrNotFound) {
			err = nil
		}
		return !found, err
	})
	if err == nil && !found {
		err = ErrNotFound
	}
	return r, err
}

// call returns the record of a call without its Arguments, or nil if there is none.
func (x *index) call(k Key) (*Record, error) {
	v := x.view()
	defer v.close()
	r, err := v.record(k)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	r.Arguments = nil
	return &r, nil
}
