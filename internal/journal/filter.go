package journal

import (
	"context"
	"sync/atomic"
)

// filter is a Bloom filter of the identities of all recorded calls, valid once whole is set. With a million calls, 1.5
// % of other identities match and are looked up needlessly. It takes 8 MB.
type filter struct {
	hash  hasher
	bits  [1 << 20]atomic.Uint64
	whole atomic.Bool
}

// filterAfter is how many lookups must fail before a filter is made: short-lived processes need none.
const filterAfter = 256

func (f *filter) at(hash uint32) (word *atomic.Uint64, bit uint64) {
	hash *= 0x9e3779b1 // spread the low bits of a masked hash over the whole filter
	return &f.bits[hash>>12], 1 << (hash >> 6 & 63)
}

func (f *filter) add(hash uint32) {
	word, bit := f.at(hash)
	word.Or(bit)
}

// lacks reports whether an identity was certainly never recorded. f may be nil.
func (f *filter) lacks(id identity) bool {
	if f == nil || !f.whole.Load() {
		return false
	}
	word, bit := f.at(f.hash.identity(id))
	return word.Load()&bit == 0
}

// seldom creates a filter after many failed lookups. The caller holds the table's lock.
func (j *Journal) seldom(t *table) {
	if j.misses++; j.misses < filterAfter || t.filter != nil {
		return
	}
	f := &filter{hash: j.index.hash}
	for id := range t.ids {
		f.add(f.hash.identity(id))
	}
	t.filter = f
	// Ends when the whole index is read, or the journal is closed.
	j.beside.Go(func() {
		err := j.index.identities(func(hash uint32) bool {
			f.add(hash)
			return !j.closing.Load()
		})
		f.whole.Store(err == nil && !j.closing.Load())
	})
}

// identities passes the identity hashes of all indexed calls to more until it returns false.
func (x *index) identities(more func(hash uint32) bool) error {
	v := x.view()
	defer v.close()
	return v.each(context.Background(), true, func(s *summary) bool { return s.most == 0 }, func(p *part, _ []Key) (bool, error) {
		hashes := p.hash(callRows, cIdentity)
		for row := 0; p.err == nil && row < p.rows(callRows); row++ {
			if !more(hashes.At(row)) {
				return false, nil
			}
		}
		return true, p.err
	})
}
