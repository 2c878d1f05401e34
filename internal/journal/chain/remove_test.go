package chain_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// removedSite is a log whose first segments were removed, and had texts beside them.
func removedSite(t *testing.T) *site {
	t.Helper()
	s := newSite()
	must.Do(t, s.open())
	for i := range 8 {
		must.Do(t, s.add(fmt.Sprint(beside, i), strings.Repeat("x", 90), beside+"the same"))
	}
	must.Do(t, s.sync())
	must.Do(t, s.remove(3))
	return s
}

func TestSegmentsGoWithWhatIsBesideThem(t *testing.T) {
	t.Parallel()
	s := removedSite(t)
	names := slices.Sorted(maps.Keys(s.dir.all()))
	var segments, blobs []string
	for _, name := range names {
		if strings.HasPrefix(name, "blobs/") {
			blobs = append(blobs, name[len(name)-8:])
		} else {
			segments = append(segments, name[:8])
		}
	}
	slices.Sort(blobs)
	if len(segments) != 3 || segments[0] == "00000001" || !slices.Equal(slices.Compact(slices.Clone(blobs)), segments[:len(slices.Compact(slices.Clone(blobs)))]) {
		t.Errorf("segments %q are left, and blobs of %q", segments, blobs)
	}
	s.verifies(t, "after a removal")
	list, err := s.log.Segments()
	if err != nil || len(list) != 3 || list[0].Bytes <= int64(len(s.dir.names[segments[0]+".log"].now)) || list[1].Begun.Before(list[0].Begun) {
		t.Errorf("segments are %+v, %v", list, err)
	}
	next := s.after(nil)
	must.Do(t, next.open())
	next.verifies(t, "opened again")
	must.Do(t, next.remove(1))
	next.verifies(t, "removed again")
}

// A segment whose first record is still being written is none yet.
func TestASegmentThatIsBeingBegunIsNotListed(t *testing.T) {
	t.Parallel()
	s := removedSite(t)
	before := must.Get(s.log.Segments())(t)
	f := must.Get(s.dir.Create(fmt.Sprintf("%08d.log", before[len(before)-1].Number+1)))(t)
	defer f.Close()
	if list, err := s.log.Segments(); err != nil || !slices.Equal(list, before) {
		t.Errorf("segments are %+v, %v, want %+v", list, err, before)
	}
}

// What toold has not removed itself is missing.
func TestSegmentsThatSomebodyElseRemovedAreMissing(t *testing.T) {
	t.Parallel()
	for _, more := range []int{1, 2} {
		s := removedSite(t)
		names := slices.Sorted(maps.Keys(s.dir.names))
		for _, name := range names[:more] {
			delete(s.dir.names, name)
		}
		var damage *chain.DamageError
		if err := s.open(); !errors.As(err, &damage) {
			t.Errorf("without %d segments: %v", more, err)
		}
	}
	s := newSite()
	must.Do(t, s.open())
	s.work("a")
	delete(s.dir.names, "00000001.log")
	var damage *chain.DamageError
	if err := s.open(); !errors.As(err, &damage) || !strings.Contains(err.Error(), "no record says that toold has removed it") {
		t.Errorf("without the first segment: %v", err)
	}
}

func TestATextBesideTheLogIsMissed(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(map[string]*content, string){
		"removed": func(in map[string]*content, name string) { delete(in, name) },
		"emptied": func(in map[string]*content, name string) { in[name] = &content{} },
		"longer":  func(in map[string]*content, name string) { in[name].now = append(in[name].now, 0) },
	} {
		s := newSite()
		must.Do(t, s.open())
		must.Do(t, s.add(beside+"text"))
		for _, d := range s.dir.dirs["blobs"].dirs {
			for blob := range d.names {
				do(d.names, blob)
			}
		}
		if _, _, err := chain.Verify(s.options(func(r chain.Record) error { _, err := s.text(r); return err })); !errors.Is(err, chain.ErrBlob) {
			t.Errorf("%s: %v", name, err)
		}
		must.Do(t, s.add(beside+"text")) // it is written again
		if _, _, err := chain.Verify(s.options(func(r chain.Record) error { _, err := s.text(r); return err })); err != nil {
			t.Errorf("%s, and kept again: %v", name, err)
		}
	}
}

// What is cut off is in a record.
func TestWhatIsCutOffIsRecorded(t *testing.T) {
	t.Parallel()
	for _, other := range []bool{false, true} {
		s := newSite()
		must.Do(t, s.open())
		must.Do(t, s.add("one"))
		must.Do(t, s.sync())
		c := s.dir.names["00000001.log"]
		c.now = append(slices.Clone(c.now), "half of a record"...)
		if !other {
			s = s.after(rand.New(rand.NewPCG(1, 1)))
			s.dir.names["00000001.log"].now = c.now
			must.Do(t, s.open())
		}
		must.Do(t, s.add("two"))
		var cut []string
		o := s.options(func(chain.Record) error { return nil })
		o.Own = func(r chain.Record) {
			if c := r.Cut(); c.Bytes > 0 {
				cut = append(cut, fmt.Sprint(c.Bytes, " ", string(c.Text)))
			}
		}
		_, rest, err := chain.Verify(o)
		if err != nil || rest != 0 || !slices.Equal(cut, []string{"16 half of a record"}) {
			t.Errorf("cut are %q, %d bytes left, %v", cut, rest, err)
		}
	}
}

// A record that is damaged is passed on, and all that follow it.
func TestWhatFollowsADamagedRecordIsFound(t *testing.T) {
	t.Parallel()
	s := newSite()
	must.Do(t, s.open())
	s.work("a")
	must.Do(t, s.sync())
	var marks []chain.Mark
	var records []string
	shown := func(r chain.Record) string {
		return fmt.Sprintf("%d %d %d %d %q", r.Number, r.Segment, r.Offset, r.Kind, r.Body)
	}
	must.Do(t, s.log.Copy(chain.Mark{}, s.log.Last(), func(r chain.Record) error {
		marks, records = append(marks, r.Mark), append(records, shown(r))
		return nil
	}))
	for i, m := range marks {
		text := s.dir.names[fmt.Sprintf("%08d.log", m.Segment)].now
		for _, at := range []int64{0, 2, 3, 4, 20, 45, 50, 57} {
			text[m.Offset+at] ^= 1
			var left []string
			must.Do(t, chain.Salvage(s.dir, m, func(r chain.Record) { left = append(left, shown(r)) }))
			text[m.Offset+at] ^= 1
			want := records[i+1:]
			if len(left) < len(want) || len(left) > len(want)+1 || !slices.Equal(left[len(left)-len(want):], want) {
				t.Fatalf("byte %d of record %d: %q, want %q", at, m.Number, left, want)
			}
		}
	}
}

// A process that dies after it has named a text leaves the name to the system; who means the
// same text brings it to the disk.
func TestATextThatAnotherProcessKeptIsBroughtToTheDisk(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		s := newSite()
		must.Do(t, s.open())
		for n := 1; ; n++ {
			s.dir.failing(n, 1000, syscall.EIO)
			if err := s.add(beside + "text"); err == nil {
				break
			}
			next := s.after(nil)
			must.Do(t, next.open())
			must.Do(t, next.add(beside+"text"))
			must.Do(t, next.sync())
			after := next.after(rand.New(rand.NewPCG(seed, uint64(n))))
			must.Do(t, after.open())
			after.verifies(t, fmt.Sprint("after call ", n))
			s = newSite()
			must.Do(t, s.open())
		}
	}
}

// The note is of a record that stays, whichever part of it a power cut tears.
func TestALogIsOpenedFromARecordAfterARemoval(t *testing.T) {
	t.Parallel()
	s := newSite()
	must.Do(t, s.open())
	s.work("a")
	must.Do(t, s.remove(1))
	var last chain.Mark
	_, _, err := chain.Verify(s.options(func(r chain.Record) error { last = r.Mark; return nil }))
	if err != nil || last.Number == 0 {
		t.Fatalf("last is %v, %v", last, err)
	}
	clear(s.notes.names["head"].now[:100])
	o := s.options(func(chain.Record) error { return nil })
	o.From, o.Begins = last, last.Segment
	for begins, want := range map[uint32]error{last.Segment: nil, last.Segment - 1: chain.ErrNoMark} {
		o.Begins = begins
		if _, err := chain.Open(o); !errors.Is(err, want) {
			t.Errorf("from segment %d, if it must have %d: %v", last.Segment, begins, err)
		}
	}
}
