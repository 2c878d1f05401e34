package journal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/columns"
)

// index locates calls and messages in the log. It consists of complete chunks and a tail with the newest records, all
// derived from the log. Chunks that cannot be written remain in memory.
type index struct {
	log     chain.Dir
	dir     chain.Dir // of the chunks; nil: chunks remain in memory
	hash    hasher
	texts   texts
	records uint64 // maximum in a chunk

	saving sync.Mutex   // held during save
	mu     sync.RWMutex // guards the fields below
	newest *newest      // may be nil
	chunks []*chunk     // oldest first
	tail   *tail        // nil before the first record
	saved  uint64       // last record in the file of the tail
	failed uint64       // guarded by saving: last record when writing failed; 0 after success
	begins int64        // first segment that was not removed
	moved  map[Key]*moved
	origin map[Key]origin // calls that returned in a later chunk
}

// chunk is a complete part of the index, in memory or in its file.
type chunk struct {
	summary
	name  string
	moved []Key // calls that later chunks change; guarded by index.mu

	mu     sync.Mutex
	memory *tail // sealed; nil once file is set
	file   *columns.File
}

type moved struct {
	change
	places []place
}

const (
	indexName  = "index"
	oldIndex   = "index.db"
	unfinished = ".new"
)

func openIndex(f *files) (*index, error) {
	x := &index{log: f.log, texts: texts{dir: f.log}, records: f.chunk, moved: map[Key]*moved{}, origin: map[Key]origin{}}
	if f.path != "" {
		for _, name := range []string{oldIndex, oldIndex + "-wal", oldIndex + "-shm"} {
			_ = os.Remove(filepath.Join(f.path, name)) // unused files only take space
		}
	}
	id, first, err := chain.Identify(f.log)
	if err != nil {
		return nil, fmt.Errorf("cannot open the index of the journal: %w", err)
	}
	x.hash = hasher{id, f.hashMask}
	if x.dir, err = f.log.Sub(indexName, true); err != nil {
		x.dir = nil
		return x, nil
	}
	list, err := x.files(first)
	if err != nil {
		return x, nil
	}
	for _, c := range list {
		if !x.follows(c) {
			break
		}
		x.chunks = append(x.chunks, c)
	}
	return x, nil
}

// files returns the readable chunks in order. It removes obsolete and unfinished files.
func (x *index) files(first uint32) (list []*chunk, err error) {
	names, err := x.dir.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		number, _, _ := strings.Cut(name, "-")
		segment, _ := strconv.ParseUint(number, 10, 32) // 0 for another file
		if segment < uint64(first) || strings.HasSuffix(name, unfinished) {
			_ = x.dir.Remove(name) // it is created again
			continue
		}
		c, err := x.open(name)
		if err == nil {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *chunk) int { return cmp.Compare(a.first.Number, b.first.Number) })
	return list, nil
}

var errForeign = errors.New("it is of another journal")

func (x *index) open(name string) (*chunk, error) {
	f, err := x.dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	s, file, err := parseChunk(f, size)
	isOurs := s.id == x.hash.id && s.records == int64(x.records) && s.mask == int64(x.hash.mask)
	if err == nil && (!isOurs || name != s.chunkName()) {
		err = errForeign
	}
	return &chunk{summary: s, name: name, file: file}, err
}

func (x *index) follows(c *chunk) bool {
	var last chain.Mark
	if n := len(x.chunks); n > 0 {
		last = x.chunks[n-1].last
		if last.Number+1 == c.first.Number {
			return last.Hash == c.before
		}
	}
	if c.first.Number <= last.Number {
		return false
	}
	met := false // only the log's own records may precede it
	err := chain.Read(x.log, last, c.first, func(rec chain.Record) error {
		if rec.Mark != c.first {
			return errForeign
		}
		met = true
		return nil
	})
	return err == nil && met
}

// restore loads open calls, early cancels and numbers into a table, and makes the last chunk the tail. It returns the last
// indexed record.
func (x *index) restore(t *table) (at chain.Mark, err error) {
	x.tail, x.saved, x.begins = nil, 0, 0
	clear(x.moved)
	clear(x.origin)
	open := map[Key]bool{}
	for _, c := range x.chunks {
		c.moved = nil
		at = c.last
		t.lastKey, t.begins = max(t.lastKey, c.lastKey), max(t.begins, c.begins)
		t.count(c.lastSeq)
		for _, k := range c.open {
			open[Key(k)] = true
		}
		for _, f := range c.foreign {
			if f.set&hasEnded != 0 {
				delete(open, Key(f.key))
			}
		}
		for i := range c.earlyCancels {
			if c.earlyCancels[i].reset {
				clear(t.earlyCancels)
			} else {
				t.cancelEarly(&c.earlyCancels[i].earlyCancelEvent)
			}
		}
		x.meet(c.foreign, c.first.Segment) // changes to earlier chunks
	}
	t.number = at.Number
	if err := x.reopen(); err != nil {
		return at, err
	}
	x.remove(t.begins)
	v := x.view()
	defer v.close()
	for k := range open {
		if x.home(k) == nil && !x.inTail(k) {
			continue
		}
		r, err := v.record(k)
		if err != nil {
			return at, err
		}
		r.Arguments = nil
		t.restore(&r)
	}
	t.commit()
	return at, nil
}

func (x *index) reopen() error {
	n := len(x.chunks)
	if n == 0 {
		return nil
	}
	c := x.chunks[n-1]
	f, err := x.dir.Open(c.name)
	if err != nil {
		return err
	}
	defer f.Close()
	t, err := resume(x.hash, c.summary, c.file, f)
	if err != nil {
		return err
	}
	x.chunks, x.tail, x.saved = x.chunks[:n-1], t, c.last.Number
	v := x.view()
	defer v.close()
	for _, f := range c.foreign {
		if f.row > 0 {
			if _, err := v.origin(Key(f.key)); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop removes the last chunk, which is unreadable or whose records the log lacks.
func (x *index) drop() {
	name := ""
	switch n := len(x.chunks); {
	case x.tail != nil:
		name, x.tail = x.tail.chunkName(), nil
	case n > 0:
		name, x.chunks = x.chunks[n-1].name, x.chunks[:n-1]
	default:
		return
	}
	_ = x.dir.Remove(name) // it is created again
}

// meet records changes to calls of earlier chunks.
func (x *index) meet(list []foreign, segment uint32) {
	for _, f := range list {
		home := x.home(Key(f.key))
		if home == nil {
			continue
		}
		m := x.moved[Key(f.key)]
		if m == nil {
			m = &moved{}
			x.moved[Key(f.key)] = m
			home.moved = append(home.moved, Key(f.key))
		}
		m.and(f.change)
		m.places = append(m.places, place{segment, f.at})
	}
}

// home returns the chunk of a call, or nil if the call is in the tail or unknown.
func (x *index) home(k Key) *chunk {
	for _, c := range slices.Backward(x.chunks) {
		if c.least <= k && k <= c.most && c.most > 0 {
			return c
		}
	}
	return nil
}

func (x *index) begin() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.begins
}

func (x *index) any() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.tail != nil || len(x.chunks) > 0
}

func (x *index) last() (m chain.Mark) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	switch n := len(x.chunks); {
	case x.tail != nil:
		return x.tail.last
	case n > 0:
		return x.chunks[n-1].last
	}
	return m
}

func (x *index) segment(k Key) uint32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if c := x.home(k); c != nil {
		return c.first.Segment
	}
	return x.tail.first.Segment
}

func (x *index) inTail(k Key) bool { return x.tail != nil && x.tail.rows[k] != nil }

// add indexes a record that changes call; call may be nil.
func (x *index) add(r taken, call *Call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.openNewest(r.Segment)
	if x.tail != nil && r.Number <= x.tail.last.Number {
		return
	}
	if x.tail != nil && !x.tail.has(r.Mark) {
		x.tail.seal()
		c := &chunk{summary: x.tail.summary, name: x.tail.chunkName(), memory: x.tail}
		x.chunks, x.tail, x.saved = append(x.chunks, c), nil, 0
	}
	if x.tail == nil {
		x.tail = newTail(x.hash, x.records)
	}
	n := len(x.tail.foreign)
	x.tail.add(r)
	for _, f := range x.tail.foreign[n:] {
		if f.row > 0 && call != nil {
			x.origin[Key(f.key)] = x.hash.origin(call)
		}
	}
	x.meet(x.tail.foreign[n:], r.Segment)
	if e, is := r.event.(*removedEvent); is {
		x.remove(e.stays)
	}
}

// remove forgets the segments before stays. The caller holds mu, or no one else uses x.
func (x *index) remove(stays int64) {
	if stays <= x.begins {
		return
	}
	x.begins = stays
	n := 0
	for n < len(x.chunks) && int64(x.chunks[n].first.Segment) < stays {
		if x.dir != nil {
			_ = x.dir.Remove(x.chunks[n].name) // a remaining file is ignored
		}
		n++
	}
	x.chunks = slices.Clone(x.chunks[n:])
	for k := range x.moved {
		if x.home(k) == nil {
			delete(x.moved, k)
		}
	}
	for k := range x.origin {
		if x.home(k) == nil && !x.inTail(k) {
			delete(x.origin, k)
		}
	}
}

func (x *index) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.newest.release()
	x.newest = nil
	if x.dir == nil {
		return nil
	}
	return x.dir.Close()
}
