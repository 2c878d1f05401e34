package chain_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

const small = 300 // bytes of a segment: some records

// site is a log in memory, with what a user of it has seen.
type site struct {
	dir, notes *memory
	log        *chain.Log
	seen       []string // of what the log passed on, in its order
	where      []uint32 // it was, which segments

	tried    map[string]bool // to append
	refused  map[string]bool // were certainly not appended
	appended []string        // in their order
	promised int             // so many of appended are on the disk
	segments []uint32        // of appended
	removed  uint32          // segments before it may have been removed
}

func newSite() *site {
	return &site{dir: newMemory(), notes: newMemory(), tried: map[string]bool{}, refused: map[string]bool{}}
}

func (s *site) options(seen func(chain.Record) error) chain.Options {
	return chain.Options{Dir: s.dir, Notes: s.notes, Note: "head", SegmentBytes: small, Seen: seen}
}

func (s *site) open() (err error) {
	s.seen, s.where = nil, nil
	s.log, err = chain.Open(s.options(func(r chain.Record) error {
		text, err := s.text(r)
		s.seen, s.where = append(s.seen, text), append(s.where, r.Segment)
		return err
	}))
	return err
}

// A text that begins with this is beside the log.
const beside = "beside:"

// text is what a record says.
func (s *site) text(r chain.Record) (string, error) {
	hash, is := strings.CutPrefix(string(r.Body), beside)
	if !is {
		return string(r.Body), nil
	}
	h := chain.Hash([]byte(hash[:32]))
	size, err := strconv.Atoi(hash[32:])
	if err != nil {
		return "", err
	}
	text, err := chain.ReadBlob(s.dir, r.Segment, h, int64(size))
	return string(text), err
}

// add appends records in one update.
func (s *site) add(texts ...string) error {
	for _, text := range texts {
		s.tried[text] = true
	}
	var marks []chain.Mark
	err := s.log.Update(func(b *chain.Batch) error {
		marks = nil
		for _, text := range texts {
			body := []byte(text)
			if strings.HasPrefix(text, beside) {
				h, err := b.Blob(body)
				if err != nil {
					return err
				}
				body = fmt.Appendf([]byte(beside), "%s%d", h[:], len(text))
			}
			m, err := b.Append('m', body)
			if err != nil {
				return err
			}
			marks = append(marks, m)
		}
		return nil
	})
	switch {
	case err == nil:
		s.appended = append(s.appended, texts...)
		for _, m := range marks {
			s.segments = append(s.segments, m.Segment)
		}
	case !errors.Is(err, chain.ErrUnsure):
		for _, text := range texts {
			s.refused[text] = true
		}
	}
	return err
}

func (s *site) sync() error {
	err := s.log.Sync(s.log.Last().Number)
	if err == nil {
		s.promised = len(s.appended)
	}
	return err
}

// work is what a process does: some records a time, mostly synced.
func (s *site) work(name string) {
	for i := range 12 {
		texts := []string{fmt.Sprint(name, "-", i)}
		if i%4 == 1 {
			texts = append(texts, texts[0]+"b", texts[0]+"c"+strings.Repeat(".", 90))
		}
		if s.add(texts...) == nil && i%3 != 2 {
			_ = s.sync()
		}
		if i == 1 {
			_ = s.log.Extend()
		}
	}
}

// workMore is work with texts beside the log, and segments that are removed.
func (s *site) workMore(name string) {
	for i := range 4 {
		text := fmt.Sprint(beside, name, i)
		if s.add(text[len(beside):], text, beside+"the same in each segment") == nil && i%2 == 1 {
			_ = s.sync()
		}
	}
	s.work(name)
	_ = s.remove(2)
	_ = s.add(beside + name)
	_ = s.sync()
	_ = s.remove(1)
}

// remove removes all segments but the last ones, so many.
func (s *site) remove(stay uint32) error {
	return s.log.Remove(func(_ *chain.Batch, first, last uint32) (uint32, error) {
		stays := max(first, last-min(last, stay-1))
		s.removed = max(s.removed, stays)
		return stays, nil
	})
}

// check opens what is left and compares it with what was promised. When the machine went
// on, what was refused is not there either.
func (s *site) check(t *testing.T, what string, crashed bool) {
	t.Helper()
	if err := s.open(); err != nil {
		t.Fatalf("%s: it does not open: %v", what, err)
	}
	next := 0
	for len(s.seen) > 0 && next < len(s.segments) && s.segments[next] < s.removed && s.appended[next] != s.seen[0] {
		next++ // it was removed
	}
	for next < len(s.segments) && len(s.seen) == 0 && s.segments[next] < s.removed {
		next++
	}
	for _, text := range s.seen {
		switch {
		case next < len(s.appended) && text == s.appended[next]:
			next++
		case !s.tried[text], !crashed && s.refused[text]:
			t.Fatalf("%s: %q is in the log", what, text)
		}
	}
	if next < s.promised || !crashed && next < len(s.appended) {
		t.Fatalf("%s: %q is missing; there are %q", what, s.appended[next], s.seen)
	}
	s.verifies(t, what)
	if err := s.add(fmt.Sprint("after-", len(s.tried))); err != nil {
		t.Fatalf("%s: it takes nothing more: %v", what, err)
	}
	if err := s.sync(); err != nil {
		t.Fatalf("%s: it syncs no more: %v", what, err)
	}
	s.verifies(t, what)
}

// verifies reads the whole log.
func (s *site) verifies(t *testing.T, what string) {
	t.Helper()
	n := 0
	last, rest, err := chain.Verify(s.options(func(r chain.Record) error { n++; _, err := s.text(r); return err }))
	if err != nil || rest != 0 || last != s.log.Last() {
		t.Fatalf("%s: verify returns %v, %d bytes left, %v; want %v", what, last, rest, err, s.log.Last())
	}
}

// text is that of a file without the zeros that may be behind it.
func text(file []byte) []byte { return bytes.TrimRight(file, "\x00") }

// cut is how many bytes were cut off the log.
func (s *site) cut(t *testing.T) (bytes int64) {
	t.Helper()
	o := s.options(func(chain.Record) error { return nil })
	o.Own = func(r chain.Record) { bytes += r.Cut().Bytes }
	if _, _, err := chain.Verify(o); err != nil {
		t.Error(err)
	}
	return bytes
}

// after is the site of another process, or of the next start of the machine.
func (s *site) after(r *rand.Rand) *site {
	next := *s
	next.dir.locked = false
	next.dir.at, next.notes.at = 0, 0
	if r != nil {
		next.dir, next.notes = s.dir.crashed(r), s.notes.crashed(r)
	}
	return &next
}

func TestEachFaultIsSurvived(t *testing.T) {
	must.Long(t)
	t.Parallel()
	errs := []error{syscall.EIO, syscall.ENOSPC, syscall.EACCES}
	for i, times := range []int{1, 2, 1000} {
		for _, where := range []string{"the log", "the note"} {
			t.Run(fmt.Sprint(times, " in ", where), func(t *testing.T) {
				t.Parallel()
				n := 1
				for faulty(t, n, times, where, errs[(n+i)%3]) { // each call fails with each, some number of times
					n++
				}
				t.Logf("%d calls of the file system", n-1)
			})
		}
	}
}

// faulty has the n-th call of a file system fail. It reports false when there are less.
func faulty(t *testing.T, n, times int, where string, fault error) bool {
	t.Helper()
	run := func() (*site, bool) {
		s := newSite()
		m := s.dir
		if where == "the note" {
			m = s.notes
		}
		m.failing(n, times, fault)
		if s.open() == nil {
			s.workMore("first")
		}
		return s, m.failed()
	}
	what := fmt.Sprintf("call %d of %s fails", n, where)
	s, hit := run()
	s.after(nil).check(t, what, false)
	for seed := range uint64(6) {
		s, _ := run()
		s.after(rand.New(rand.NewPCG(seed, uint64(n)))).check(t, fmt.Sprint(what, ", then power is cut, ", seed), true)
	}
	return hit
}

// Processes end in the middle of a call, and the machine too, again and again.
func TestManyCrashesLoseNothingThatWasPromised(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newSite()
		for round := range 6 {
			what := fmt.Sprint("seed ", seed, ", round ", round)
			s.dir.failing(1+r.IntN(150), 1000, syscall.EIO) // from then on the process is dead
			if s.open() == nil {
				s.workMore(fmt.Sprint(round))
			}
			crashed := r.IntN(2) == 0
			if crashed {
				s = s.after(r)
			} else {
				s = s.after(nil)
			}
			s.check(t, what, true)
			after := s.appended[len(s.appended)-1]
			s.appended, s.segments = slices.Clone(s.seen), slices.Clone(s.where) // it has them, and has synced
			s.appended, s.segments = append(s.appended, after), append(s.segments, s.log.Last().Segment)
			s.promised = len(s.appended)
		}
	}
}

func TestALastRecordThatIsCutAnywhereIsRemoved(t *testing.T) {
	t.Parallel()
	whole := newSite()
	must.Do(t, whole.open())
	must.Do(t, whole.add("one"))
	must.Do(t, whole.sync())
	before := len(whole.dir.names["00000001.log"].now)
	note := slices.Clone(whole.notes.names["head"].now)
	must.Do(t, whole.add("two"))
	must.Do(t, whole.sync())
	after := whole.dir.names["00000001.log"].now
	for size := before; size < len(after); size++ {
		for _, noted := range []bool{false, true} {
			s := whole.after(rand.New(rand.NewPCG(1, 1)))
			s.dir.names["00000001.log"].now = slices.Clone(after[:size])
			if !noted {
				s.notes.names["head"] = &content{now: note}
			}
			err := s.open()
			var damage *chain.DamageError
			switch {
			case noted && (!errors.As(err, &damage) || damage.Mark.Number != 3):
				t.Errorf("cut at %d of %d behind the note: %v", size, len(after), err)
			case !noted && (err != nil || len(s.seen) != 1 || s.cut(t) != int64(max(0, len(text(after[:size]))-before))):
				t.Errorf("cut at %d of %d: %v, %q", size, len(after), err, s.seen)
			}
		}
	}
}

func TestEachChangedByteIsFound(t *testing.T) {
	t.Parallel()
	s := newSite()
	must.Do(t, s.open())
	s.workMore("a")
	s.workMore("b")
	must.Do(t, s.add(beside+"b"))
	must.Do(t, s.sync())
	for name, c := range s.dir.all() {
		for i := range c.now {
			c.now[i] ^= 1 << (i % 8)
			_, rest, err := chain.Verify(s.options(func(r chain.Record) error { _, err := s.text(r); return err }))
			if err == nil && rest == 0 {
				t.Errorf("byte %d of %s was changed, and that is not found", i, name)
			}
			c.now[i] ^= 1 << (i % 8)
		}
	}
	head := s.notes.names["head"].now
	for i := range head {
		head[i] ^= 1
		if _, _, err := chain.Verify(s.options(func(chain.Record) error { return nil })); err == nil {
			t.Errorf("byte %d of the note was changed, and that is not found", i)
		}
		head[i] ^= 1
	}
	s.verifies(t, "nothing is changed")
}

func TestALogThatHasLostRecordsIsNotOpened(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *site){
		"everything":        func(_ *testing.T, s *site) { s.dir = newMemory() },
		"the last segment":  func(_ *testing.T, s *site) { delete(s.dir.names, "00000004.log") },
		"a segment between": func(_ *testing.T, s *site) { delete(s.dir.names, "00000002.log") },
		"the first segment": func(_ *testing.T, s *site) { delete(s.dir.names, "00000001.log") },
		"its end":           func(_ *testing.T, s *site) { c := s.dir.names["00000004.log"]; c.now = c.now[:len(text(c.now))-40] },
		"all of a segment":  func(_ *testing.T, s *site) { s.dir.names["00000003.log"].now = nil },
		"two segments, with a torn note": func(_ *testing.T, s *site) {
			delete(s.dir.names, "00000004.log")
			delete(s.dir.names, "00000003.log")
			clear(s.notes.names["head"].now[:100])
		},
		"to another log": func(t *testing.T, s *site) {
			other := newSite()
			must.Do(t, other.open())
			other.work("b")
			s.dir = other.dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite()
			must.Do(t, s.open())
			s.work("a")
			must.Do(t, s.sync())
			if s.dir.names["00000004.log"] == nil || s.dir.names["00000005.log"] != nil {
				t.Fatalf("there are %d segments", len(s.dir.names))
			}
			lose(t, s)
			var damage *chain.DamageError
			if err := s.open(); !errors.As(err, &damage) {
				t.Errorf("it opens: %v", err)
			}
		})
	}
}

func TestALogThatGoesAwayTakesNothingMore(t *testing.T) {
	t.Parallel()
	s := newSite()
	must.Do(t, s.open())
	must.Do(t, s.add("a"))
	must.Do(t, s.log.Present())
	c := s.dir.names["00000001.log"]
	s.dir.names["00000001.log"] = &content{}
	if err := s.add("b"); !errors.Is(err, chain.ErrGone) {
		t.Errorf("replaced: %v", err)
	}
	if err := s.log.Present(); !errors.Is(err, chain.ErrGone) {
		t.Errorf("present: %v", err)
	}
	s.dir.names["00000001.log"] = c
	c.now = c.now[:len(c.now)-1]
	var damage *chain.DamageError
	if err := s.add("c"); !errors.As(err, &damage) {
		t.Errorf("cut off: %v", err)
	}
}

// A slot of the note that was changed is not believed, and the other one counts.
func TestAChangedSlotOfTheNoteIsNotBelieved(t *testing.T) {
	t.Parallel()
	s := newSite()
	must.Do(t, s.open())
	s.work("a")
	must.Do(t, s.sync())
	whole := slices.Clone(s.notes.names["head"].now)
	for i := range whole {
		for _, bit := range []byte{1, 8} { // a digit becomes another, or is none
			s.notes.names["head"] = &content{now: slices.Clone(whole)}
			s.notes.names["head"].now[i] ^= bit
			if err := s.open(); err != nil {
				t.Errorf("byte %d of the note was changed: %v", i, err)
			}
		}
	}
	s.verifies(t, "the changed slot was written again")
}
