package journal

import (
	"context"
	"sync/atomic"
)

// filter is a Bloom filter of all recorded identities, complete once whole is set.
type filter struct {
	hash  hasher
	bits  []atomic.Uint64
	whole atomic.Bool
	room  atomic.Int64 // how many more may be added
}

const (
	filterAfter = 256 // failed lookups: short-lived processes need no filter
	filterBits  = 16  // per identity
	filterSteps = 6
)

func newFilter(hash hasher, calls int64) *filter {
	room := 2*calls + 1<<16
	f := &filter{hash: hash, bits: make([]atomic.Uint64, room*filterBits/64)}
	f.room.Store(room)
	return f
}

// each calls do for each bit of a hash while it returns true.
func (f *filter) each(hash uint32, do func(word *atomic.Uint64, bit uint64) bool) bool {
	h := uint64(hash) * 0x9e3779b97f4a7c15 // spreads the hash over all bits
	step := h>>32 | 1
	for range filterSteps {
		if at := h % uint64(len(f.bits)*64); !do(&f.bits[at/64], 1<<(at%64)) {
			return false
		}
		h += step
	}
	return true
}

func (f *filter) add(id identity) { f.set(f.hash.identity(id)) }

func (f *filter) set(hash uint32) {
	f.room.Add(-1)
	f.each(hash, func(word *atomic.Uint64, bit uint64) bool { word.Or(bit); return true })
}

// lacks reports whether an identity was certainly never recorded.
func (f *filter) lacks(id identity) bool {
	return f != nil && f.whole.Load() && !f.each(f.hash.identity(id), func(word *atomic.Uint64, bit uint64) bool { return word.Load()&bit != 0 })
}

// seldom makes a filter after many failed lookups, and a larger one when it is full. The caller
// holds the table's lock.
func (j *Journal) seldom(t *table) {
	if j.misses++; j.misses < filterAfter || t.filter != nil && t.filter.room.Load() > 0 {
		return
	}
	j.misses = 0
	f := newFilter(j.index.hash, j.index.calls()+int64(len(t.ids)))
	for id := range t.ids {
		f.add(id)
	}
	t.filter = f
	// Ends when the index is read, or the journal is closed.
	j.beside.Go(func() {
		err := j.index.identities(func(hash uint32) bool {
			f.set(hash)
			return !j.closing.Load()
		})
		f.whole.Store(err == nil && !j.closing.Load())
	})
}

func (x *index) calls() (n int64) {
	x.mu.RLock()
	chunks := x.chunks
	if x.tail != nil {
		n = int64(x.tail.calls.Len())
	}
	x.mu.RUnlock()
	for _, c := range chunks {
		c.mu.Lock()
		if c.memory != nil {
			n += int64(c.memory.calls.Len())
		} else {
			n += int64(c.file.Rows(callRows))
		}
		c.mu.Unlock()
	}
	return n
}

// identities passes on the identity hashes of all calls while more returns true.
func (x *index) identities(more func(hash uint32) bool) error {
	v := x.view()
	defer v.close()
	all := func(p *part) (bool, error) {
		h, err := p.hash(callRows, cIdentity)
		for row := 0; err == nil && row < p.rows(callRows); row++ {
			if !more(h.At(row)) {
				return false, nil
			}
		}
		return true, err
	}
	return v.each(context.Background(), true, func(s *summary) bool { return s.most == 0 }, func(c *chunk, _ []Key) (bool, error) { return all(v.part(c)) }, func(p *part) func() (bool, error) {
		_, err := all(p)
		return func() (bool, error) { return false, err }
	})
}
