package chain_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// Two processes append in turns, over many segments, and sometimes one of them dies while it
// writes.
func TestEachProcessSeesWhatTheOtherAppends(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := newSite()
		a, b := *s, *s
		must.Do(t, a.open())
		must.Do(t, b.open())
		both := []*site{&a, &b}
		var all []string
		for i := range 60 {
			x := both[r.IntN(2)]
			if r.IntN(10) == 0 { // half of a record
				for name, c := range s.dir.names {
					if s.dir.names[next(name)] == nil {
						c.now = append(slices.Clone(c.now), make([]byte, r.IntN(60))...)
					}
				}
			}
			text := fmt.Sprint(i, strings.Repeat(".", r.IntN(80)))
			must.Do(t, x.add(text))
			x.seen = append(x.seen, text)
			all = append(all, text)
			if r.IntN(3) == 0 {
				must.Do(t, x.log.Extend())
			}
			if r.IntN(3) == 0 {
				must.Do(t, x.sync())
			}
			if r.IntN(3) == 0 {
				y := both[r.IntN(2)]
				must.Do(t, y.log.CatchUp(0))
				if !slices.Equal(y.seen, all) {
					t.Fatalf("seed %d: one has caught up with %q, want %q", seed, y.seen, all)
				}
			}
		}
		for _, x := range both {
			must.Do(t, x.add())
			if !slices.Equal(x.seen, all) {
				t.Fatalf("seed %d: one saw %q, want %q", seed, x.seen, all)
			}
			must.Do(t, x.sync())
		}
		a.verifies(t, fmt.Sprint("seed ", seed))
	}
}

// One process begins a segment, appends to it, and fails to bring that to the disk. The system
// goes on showing what it has lost, and another process that goes on behind it promises both.
func TestWhatAnotherProcessCouldNotSyncIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		s := newSite()
		a, b := *s, *s
		must.Do(t, a.open())
		must.Do(t, b.open())
		must.Do(t, b.add(strings.Repeat("x", small)))
		must.Do(t, b.add("lost")) // in the next segment
		s.dir.failing(1, 1, syscall.EIO)
		if err := b.sync(); err == nil || b.log.Failure() == nil || a.log.Failure() != nil {
			t.Fatalf("the disk did not fail for one alone: %v, %v, %v", err, b.log.Failure(), a.log.Failure())
		}
		must.Do(t, a.add("kept"))
		must.Do(t, a.sync())
		after := a.after(rand.New(rand.NewPCG(seed, 6)))
		must.Do(t, after.open())
		if want := []string{"lost", "kept"}; len(after.seen) != 3 || !slices.Equal(after.seen[1:], want) {
			t.Fatalf("seed %d: left are %q, want %q", seed, after.seen, want)
		}
	}
}

// next is the name of the segment after another one.
func next(name string) string {
	var n int
	_, _ = fmt.Sscanf(strings.TrimLeft(name, "0"), "%d", &n)
	return fmt.Sprintf("%08d.log", n+1)
}

func TestWhatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite()
	must.Do(t, s.open())
	if err := s.add(strings.Repeat("x", chain.MaxBody+1)); err == nil {
		t.Error("it was appended")
	}
	must.Do(t, s.add("a"))
	s.verifies(t, "after a refusal")
}

// On the file system of the machine, with its locks.
func TestWritersOfOneDirectoryKeepOneChain(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	const writers, each = 4, 50
	failed := make(chan error, writers)
	for w := range writers {
		go func() { failed <- appendAlone(path, w, each) }()
	}
	for range writers {
		must.Do(t, <-failed)
	}
	dir := directory(t, path)
	n := 0
	_, rest, err := chain.Verify(chain.Options{Dir: dir, Notes: dir, Note: "head", Wait: time.Minute, Seen: func(chain.Record) error { n++; return nil }})
	if err != nil || n != writers*each || rest != 0 {
		t.Errorf("%d records, %d bytes left, %v", n, rest, err)
	}
}

// appendAlone is what one of several processes does.
func appendAlone(path string, writer, each int) error {
	dir, err := chain.Directory(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	seen := 0
	l, err := chain.Open(chain.Options{Dir: dir, Notes: dir, Note: "head", SegmentBytes: 2000, Wait: time.Minute, Seen: func(chain.Record) error { seen++; return nil }})
	if err != nil {
		return err
	}
	for i := range each {
		err := l.Update(func(b *chain.Batch) error {
			_, err := b.Append('m', fmt.Appendf(nil, "%d of %d", i, writer))
			return err
		})
		if err == nil {
			err = l.Sync(l.Last().Number)
		}
		if err != nil {
			return err
		}
	}
	return l.Close()
}

func directory(t *testing.T, path string) chain.Dir {
	t.Helper()
	dir := must.Get(chain.Directory(path))(t)
	t.Cleanup(func() { must.Do(t, dir.Close()) })
	return dir
}

// Who has seen a part of the log reads on from there, whatever the note says.
func TestTheLogIsReadOnFromAnyRecord(t *testing.T) {
	t.Parallel()
	s := newSite()
	must.Do(t, s.open())
	s.work("a")
	must.Do(t, s.sync())
	var marks []chain.Mark
	_, _, err := chain.Verify(s.options(func(r chain.Record) error { marks = append(marks, r.Mark); return nil }))
	must.Do(t, err)
	open := func(from chain.Mark) (n int, err error) {
		o := s.options(func(chain.Record) error { n++; return nil })
		o.From = from
		_, err = chain.Open(o)
		return n, err
	}
	note := s.notes.names["head"]
	for _, s.notes.names["head"] = range []*content{note, {now: noteOf(t, s, marks[2])}} {
		for i, m := range marks {
			if n, err := open(m); err != nil || n != len(marks)-1-i {
				t.Errorf("from record %d: %d of %d, %v", m.Number, n, len(marks), err)
			}
			for _, wrong := range []chain.Mark{
				{Number: m.Number, Segment: m.Segment, Offset: m.Offset + 1, Hash: m.Hash},
				{Number: m.Number, Segment: m.Segment + 9, Offset: m.Offset, Hash: m.Hash},
				{Number: m.Number, Segment: m.Segment, Offset: m.Offset},
				{Number: m.Number, Segment: m.Segment, Offset: 1 << 40, Hash: m.Hash},
			} {
				if _, err := open(wrong); !errors.Is(err, chain.ErrNoMark) {
					t.Errorf("from %+v: %v", wrong, err)
				}
			}
		}
	}
	first := s.dir.names["00000001.log"].now
	first[marks[2].Offset+50] ^= 1 // the record that is noted
	var damage *chain.DamageError
	if _, err := open(marks[len(marks)-1]); !errors.As(err, &damage) {
		t.Errorf("the record of the note was changed: %v", err)
	}
}

// noteOf is the note of a site as it was when a record was the last.
func noteOf(t *testing.T, s *site, m chain.Mark) []byte {
	t.Helper()
	then := s.after(nil)
	then.dir, then.notes = newMemory(), newMemory()
	for name, c := range s.dir.names {
		then.dir.names[name] = &content{now: slices.Clone(c.now)}
		if name > fmt.Sprintf("%08d.log", m.Segment) {
			delete(then.dir.names, name)
		}
	}
	last := then.dir.names[fmt.Sprintf("%08d.log", m.Segment)]
	for size := m.Offset + 1; ; size++ { // the shortest that has it
		cut := s.after(nil)
		cut.dir, cut.notes = newMemory(), newMemory()
		for name, c := range then.dir.names {
			cut.dir.names[name] = c
		}
		cut.dir.names[fmt.Sprintf("%08d.log", m.Segment)] = &content{now: last.now[:size]}
		if got, _, err := chain.Accept(cut.options(nil)); err == nil && got == m {
			return cut.notes.names["head"].now
		}
	}
}
