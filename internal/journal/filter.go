package journal

import (
	"context"
	"hash/maphash"
	"sync/atomic"
)

// filter says of most identities that were never recorded that they were not (a Bloom filter).
// It has all that were: those of the table when it was made and those recorded since then,
// and the index's once it is whole.
type filter struct {
	seed  maphash.Seed
	bits  []atomic.Uint64
	whole atomic.Bool
	room  atomic.Int64 // so many more may be added
}

const (
	filterAfter = 256 // lookups in vain: a process that makes few calls needs none
	filterBits  = 16  // of an identity
	filterSteps = 6
)

func newFilter(calls int64) *filter {
	room := 2*calls + 1<<16
	f := &filter{seed: maphash.MakeSeed(), bits: make([]atomic.Uint64, room*filterBits/64)}
	f.room.Store(room)
	return f
}

// each calls do for each bit of an identity, as long as that returns true.
func (f *filter) each(id identity, do func(word *atomic.Uint64, bit uint64) bool) bool {
	h := maphash.Comparable(f.seed, id)
	step := h>>32 | 1
	for range filterSteps {
		if at := h % uint64(len(f.bits)*64); !do(&f.bits[at/64], 1<<(at%64)) {
			return false
		}
		h += step
	}
	return true
}

func (f *filter) add(id identity) {
	f.room.Add(-1)
	f.each(id, func(word *atomic.Uint64, bit uint64) bool { word.Or(bit); return true })
}

// lacks reports whether an identity certainly was never recorded.
func (f *filter) lacks(id identity) bool {
	return f != nil && f.whole.Load() && !f.each(id, func(word *atomic.Uint64, bit uint64) bool { return word.Load()&bit != 0 })
}

// seldom makes a filter once enough identities were looked up in vain, and a larger one when
// that is full. The caller has the lock of the table.
func (j *Journal) seldom(t *table) {
	if j.misses++; j.misses < filterAfter || t.filter != nil && t.filter.room.Load() > 0 {
		return
	}
	j.misses = 0
	f := newFilter(int64(t.lastKey))
	for id := range t.ids {
		f.add(id)
	}
	t.filter = f
	// Ends when the index is read, or the journal is closed.
	j.beside.Go(func() {
		err := j.index.identities(func(id identity) bool {
			f.add(id)
			return !j.closing.Load()
		})
		f.whole.Store(err == nil && !j.closing.Load())
	})
}

// identities passes on those of all calls, as long as more returns true.
func (x *index) identities(more func(identity) bool) error {
	rows, err := x.read.QueryContext(context.Background(), "SELECT client, agent_id, tool_call_id FROM calls")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id identity
		if err := rows.Scan(&id.client, &id.agent, &id.id); err != nil {
			return err
		}
		if !more(id) {
			break
		}
	}
	return rows.Err()
}
