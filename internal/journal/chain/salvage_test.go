package chain_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// A segment that is larger than what is read at once is salvaged as a whole.
func TestALargeSegmentIsSalvaged(t *testing.T) {
	must.Long(t)
	t.Parallel()
	s := newSite()
	o := s.options(func(chain.Record) error { return nil })
	o.SegmentBytes = 1 << 30
	l := must.Get(chain.Open(o))(t)
	sizes := []int{10, 30 << 20, 31 << 20, 10, 20 << 20, 32 << 20, 10, 0}
	var marks []chain.Mark
	for _, size := range sizes {
		must.Do(t, l.Update(func(b *chain.Batch) error {
			m, err := b.Append(9, make([]byte, size))
			marks = append(marks, m)
			return err
		}))
	}
	must.Do(t, l.Close())
	for damaged := range marks {
		text := s.dir.names["00000001.log"].now
		text[marks[damaged].Offset+40] ^= 1
		var want, got []int64
		for _, m := range marks[damaged:] {
			want = append(want, m.Offset)
		}
		must.Do(t, chain.Salvage(s.dir, marks[damaged], func(r chain.Record) {
			got = append(got, r.Offset)
			if want := sizes[slices.IndexFunc(marks, func(m chain.Mark) bool { return m.Offset == r.Offset })]; r.Offset != marks[damaged].Offset && len(r.Body) != want {
				t.Errorf("with record %d damaged: %d bytes of another, want %d", damaged, len(r.Body), want)
			}
		}))
		if !slices.Equal(got, want) {
			t.Errorf("with record %d damaged: %d, want %d", damaged, got, want)
		}
		text[marks[damaged].Offset+40] ^= 1
	}
	must.Do(t, chain.Salvage(s.dir, chain.Mark{Segment: 1, Offset: 1 << 40}, func(r chain.Record) { t.Errorf("behind the end is record %d", r.Number) }))
}

// What a person accepts the loss of is kept beside the log as it was. What follows stays, unless a record before it is lost.
func TestADamagedSegmentIsSetAsideUnchanged(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"in a record", "in the first record of a segment", "behind the records of a segment", "where segments were removed before"} {
		s, all := worked(t)
		second := slices.IndexFunc(all, func(r chain.Record) bool { return r.Segment == 2 })
		damaged, want := s.dir.names[firstSegment], all[1].Mark
		switch where {
		case "in a record":
			damaged.now[all[2].Offset+50] ^= 1
		case "in the first record of a segment":
			damaged, want = s.dir.names["00000002.log"], all[second-1].Mark
			damaged.now[50] ^= 1
		case "where segments were removed before":
			must.Do(t, s.remove(2))
			damaged, want = s.dir.names[fmt.Sprintf("%08d.log", s.removed)], chain.Mark{}
			damaged.now[120] ^= 1
		default:
			damaged.now, want = append(damaged.now, "not a record"...), s.log.Last()
		}
		before := slices.Clone(damaged.now)
		last, aside, err := chain.Accept(s.options(nil))
		kept := func(name string) bool { return s.dir.names[name] != nil && slices.Equal(s.dir.names[name].now, before) }
		once := slices.Compact(slices.Sorted(slices.Values(aside)))
		if err != nil || last != want || !slices.ContainsFunc(aside, kept) || len(once) < len(aside) {
			t.Errorf("%s: the log ends with record %d, and aside are %q, %v", where, last.Number, aside, err)
		}
	}
}
