package chain_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// worked is a log of several segments with texts beside it, of which none was removed, and its
// records.
func worked(t *testing.T) (s *site, all []chain.Record) {
	t.Helper()
	s = newSite()
	must.Do(t, s.open())
	must.Do(t, s.add(beside+"a", "b"))
	s.work("c")
	must.Do(t, s.add(beside+"d"))
	must.Do(t, s.sync())
	must.Do(t, s.log.Copy(chain.Mark{}, s.log.Last(), func(r chain.Record) error { all = append(all, r); return nil }))
	return s, all
}

func marksOf(all []chain.Record) (marks []chain.Mark) {
	for _, r := range all {
		marks = append(marks, r.Mark)
	}
	return marks
}

func TestTheRecordsBetweenTwoMarksAreRead(t *testing.T) {
	t.Parallel()
	s, all := worked(t)
	for i, after := range append([]chain.Mark{{}}, marksOf(all)...) {
		for j, to := range marksOf(all) {
			var got, whole []uint64
			errRead := chain.Read(s.dir, after, to, func(r chain.Record) error { got = append(got, r.Number); return nil })
			errCopy := s.log.Copy(after, to, func(r chain.Record) error { whole = append(whole, r.Number); return nil })
			var want, wantWhole []uint64
			for _, r := range all[min(i, j+1) : j+1] {
				if wantWhole = append(wantWhole, r.Number); r.Kind == 'm' {
					want = append(want, r.Number)
				}
			}
			if errRead != nil || errCopy != nil || !slices.Equal(got, want) || !slices.Equal(whole, wantWhole) {
				t.Fatalf("from %d to %d: %v, %v and %v, %v", after.Number, to.Number, got, errRead, whole, errCopy)
			}
		}
	}
	wrong := all[3].Mark
	wrong.Hash[0] ^= 1
	if err := chain.Read(s.dir, wrong, s.log.Last(), func(chain.Record) error { return nil }); !errors.Is(err, chain.ErrNoMark) {
		t.Errorf("from a record that the log does not have: %v", err)
	}
	failed := errors.New("failed")
	if err := chain.Read(s.dir, chain.Mark{}, s.log.Last(), func(chain.Record) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("the error of who reads is %v", err)
	}
}

func TestACopyIsVerifiedAsTheLogIs(t *testing.T) {
	t.Parallel()
	s, all := worked(t)
	copied := func(skip int) chain.Copy {
		c := chain.Copy{Read: func(segment uint32, text *chain.Hash) (p []byte, err error) {
			if text != nil {
				if beside := s.dir.all()[fmt.Sprintf("blobs/%x/%x.%08d", text[:1], text[:], segment)]; beside != nil {
					return beside.now, nil
				}
				return nil, fs.ErrNotExist
			}
			for i, r := range all {
				if r.Segment == segment && i != skip {
					p = append(p, r.Text...)
				}
			}
			return p, nil
		}}
		for _, r := range all {
			c.Segments = append(c.Segments, r.Segment)
		}
		c.Segments = slices.Compact(c.Segments)
		return c
	}
	verify := func(c chain.Copy) (texts []string, err error) {
		_, _, err = chain.Verify(chain.Options{Dir: c, Noted: s.log.Last(), Seen: func(r chain.Record) error {
			text, err := s.text(r)
			texts = append(texts, text)
			return err
		}})
		return texts, err
	}
	if texts, err := verify(copied(-1)); err != nil || !slices.Equal(texts, s.appended) {
		t.Errorf("got %q, %v, want %q", texts, err, s.appended)
	}
	for i := range all {
		var damage *chain.DamageError
		if _, err := verify(copied(i)); !errors.As(err, &damage) {
			t.Errorf("record %d is missing: %v", i+1, err)
		}
	}
	for _, r := range all {
		got, err := chain.Parse(r.Segment, r.Offset, r.Text)
		if err != nil || got.Mark != r.Mark || got.Before != r.Before || string(got.Body) != string(r.Body) {
			t.Errorf("record %d is parsed as %+v, %v", r.Number, got, err)
		}
		for _, text := range [][]byte{append(slices.Clone(r.Text), 0), r.Text[:len(r.Text)-1], nil} {
			if _, err := chain.Parse(r.Segment, r.Offset, text); err == nil {
				t.Errorf("record %d of %d bytes is parsed from %d", r.Number, len(r.Text), len(text))
			}
		}
	}
	blobs := 0
	for name := range s.dir.all() {
		var h []byte
		var segment uint32
		if n, _ := fmt.Sscanf(name[min(len(name), len("blobs/00/")):], "%64x.%08d", &h, &segment); n < 2 {
			continue
		}
		blobs++
		want := s.dir.all()[name].now
		got, err := chain.ReadBlob(copied(-1), segment, chain.Hash(h), int64(len(want)))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
		if _, err := chain.ReadBlob(copied(-1), segment, chain.Hash(h), int64(len(want))+1); !errors.Is(err, chain.ErrBlob) {
			t.Errorf("%s with another size: %v", name, err)
		}
		h[31] ^= 1
		if _, err := chain.ReadBlob(copied(-1), segment, chain.Hash(h), int64(len(want))); !errors.Is(err, chain.ErrBlob) {
			t.Errorf("%s with another hash: %v", name, err)
		}
	}
	if blobs == 0 {
		t.Error("nothing is beside the log")
	}
}

func TestAReaderReadsTheRecordsOfASegment(t *testing.T) {
	t.Parallel()
	s, all := worked(t)
	r := chain.NewReader(s.dir)
	defer r.Close()
	for i, from := range all {
		if got, err := r.Record(from.Segment, from.Offset); err != nil || got.Number != from.Number || got.Before != from.Before || string(got.Text) != string(from.Text) || !got.Time.Equal(from.Time) {
			t.Errorf("record %d is %+v, %v", from.Number, got, err)
		}
		var want, got []uint64
		for _, to := range all[i:] {
			if to.Segment != from.Segment {
				break
			}
			want, got = append(want, to.Number), nil
			err := r.Each(from.Segment, from.Offset, to.Number, func(rec chain.Record) error { got = append(got, rec.Number); return nil })
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("from %d to %d: %v, %v", from.Number, to.Number, got, err)
			}
		}
		if _, err := r.Record(from.Segment, from.Offset+1); err == nil {
			t.Errorf("behind the begin of record %d is one", from.Number)
		}
	}
	if _, err := r.Record(99, 0); !errors.Is(err, chain.ErrNoMark) {
		t.Errorf("of a segment that is not there: %v", err)
	}
}

func TestAReaderReadsLongRecords(t *testing.T) {
	t.Parallel()
	s := newSite()
	must.Do(t, s.open())
	s.log.Begin(8 << 20)
	must.Do(t, s.add(strings.Repeat("x", small))) // the next one begins a segment
	for _, size := range []int{1, 2 << 10, 3 << 10, 3 << 20, 0, 1 << 20, 5} {
		must.Do(t, s.add(strings.Repeat("x", size)))
	}
	r := chain.NewReader(s.dir)
	defer r.Close()
	var got []string
	must.Do(t, r.Each(2, 0, s.log.Last().Number, func(each chain.Record) error {
		one, err := r.Record(2, each.Offset)
		if err != nil || one.Number != each.Number || string(one.Text) != string(each.Text) {
			t.Errorf("record %d alone is number %d, %v", each.Number, one.Number, err)
		}
		if each.Kind == 'm' {
			got = append(got, string(each.Body))
		}
		return nil
	}))
	if !slices.Equal(got, s.appended[1:]) {
		t.Errorf("%d records are read, want %d", len(got), len(s.appended)-1)
	}
	failed := errors.New("failed")
	if err := r.Each(2, 0, s.log.Last().Number, func(chain.Record) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("the error of who reads is %v", err)
	}
}

func TestALogIsIdentifiedByAnyOfItsSegments(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	for _, broken := range []string{"", "00000001.log", "00000002.log"} {
		if broken != "" {
			s.dir.names[broken].now[50] ^= 1
		}
		if id, first, err := chain.Identify(s.dir); err != nil || id != s.log.ID() || first != 1 {
			t.Errorf("with %q broken: %x, %d, %v", broken, id, first, err)
		}
	}
	if id, first, err := chain.Identify(newMemory()); err != nil || id != (chain.ID{}) || first != 0 {
		t.Errorf("without a log: %x, %d, %v", id, first, err)
	}
}

func TestRecordsHaveTheTimeOfTheirBatchOrOneThatIsSet(t *testing.T) {
	t.Parallel()
	s, _ := worked(t)
	made := time.Date(2026, 2, 17, 10, 30, 0, 7, time.UTC)
	last := s.log.Last()
	var now time.Time
	var size int64
	must.Do(t, s.log.Update(func(b *chain.Batch) error {
		now = b.Time()
		_, err := b.Append('m', []byte("now"))
		b.SetTime(made)
		_, err2 := b.Append('m', []byte("then"))
		size = b.Bytes()
		_, err3 := b.Blob([]byte("beside"))
		if b.Bytes() != size+6 || b.Last().Number < last.Number+2 {
			t.Errorf("a batch of %d bytes and 6 beside it has %d, and ends with record %d", size, b.Bytes(), b.Last().Number)
		}
		return errors.Join(err, err2, err3)
	}))
	var times []time.Time
	must.Do(t, chain.Read(s.dir, last, s.log.Last(), func(r chain.Record) error {
		times, size = append(times, r.Time), size-int64(len(r.Text))
		return nil
	}))
	if !slices.Equal(times, []time.Time{now, made}) || size != 0 {
		t.Errorf("got %v, want %v and %v; the size is wrong by %d", times, now, made, size)
	}
}
