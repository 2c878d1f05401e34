package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/columns"
	"github.com/toold/toold/internal/must"
)

// long opens a journal of many segments and chunks, whose calls are old-0 to old-99.
func long(t *testing.T, dir string) *Journal {
	t.Helper()
	j := openLong(t, dir)
	lived(t, j, "old", 100)
	j.settle()
	j.settle() // drops the calls from the table
	return j
}

func openLong(t *testing.T, dir string) *Journal {
	t.Helper()
	j := must.Get(open(t.Context(), dir, Self(), func(dir string) (files, error) {
		f, err := openFiles(dir)
		f.segment, f.chunk = 8<<10, 16
		return f, err
	}))(t)
	return j
}

// unknown checks that nothing is told of a call that cannot be read, least of all that it is new.
func unknown(t *testing.T, what string, j *Journal, id string) {
	t.Helper()
	if _, fresh, err := j.Begin(t.Context(), Call{Client: "agent", ID: id, Message: []byte(`{}`)}, Decision{}); fresh || !errors.Is(err, ErrUnknown) {
		t.Errorf("%s: a call that ran may run again: %v, %v", what, fresh, err)
	}
	if recorded, err := j.CancelEarly(t.Context(), "agent", nil, id, 5); recorded || err == nil {
		t.Errorf("%s: recorded %v, %v", what, recorded, err)
	}
	_, byID := j.FindAny(t.Context(), id)
	_, all := j.Calls(t.Context(), 0, 1000)
	_, text := j.Select(t.Context(), CallQuery{Text: "success", Limit: 1000})
	_, list := j.List(t.Context(), Query{Ascending: true})
	for query, err := range map[string]error{"Find": byID, "Calls": all, "Select": text, "List": list} {
		if err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %s: %v", what, query, err)
		}
	}
}

// A call whose part of the log is away, or another one, while toold runs is not new, and no query leaves it out.
func TestACallThatCannotBeReadIsNotNew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := long(t, dir)
	defer j.Close()
	segment := func(n int) string { return filepath.Join(dir, "journal", fmt.Sprintf("%08d.log", n)) }
	for _, n := range []int{1, 2} {
		text := must.Get(os.ReadFile(segment(n)))(t)
		id := map[int]string{1: "old-0", 2: "old-20"}[n]
		other := must.Get(os.ReadFile(segment(3)))(t)
		for what, change := range map[string]func() error{
			"away":       func() error { return os.Remove(segment(n)) },
			"empty":      func() error { return os.Truncate(segment(n), 0) },
			"cut off":    func() error { return os.Truncate(segment(n), 200) },
			"another":    func() error { return os.WriteFile(segment(n), other, 0o600) },
			"a link":     func() error { return errors.Join(os.Remove(segment(n)), os.Symlink("nowhere", segment(n))) },
			"no file":    func() error { return errors.Join(os.Remove(segment(n)), os.Mkdir(segment(n), 0o700)) },
			"not itself": func() error { return os.WriteFile(segment(n), bytes.Repeat([]byte{0xff}, len(text)), 0o600) },
		} {
			what = fmt.Sprintf("segment %d %s", n, what)
			must.Do(t, change())
			unknown(t, what, j, id)
			index := filepath.Join(dir, "journal", indexName)
			must.Do(t, os.Rename(index, index+"-away"))
			unknown(t, what+" and the index away", j, id)
			must.Do(t, errors.Join(os.Rename(index+"-away", index), os.RemoveAll(segment(n)), os.WriteFile(segment(n), text, 0o600)))
			if rec, fresh, err := j.Begin(t.Context(), Call{Client: "agent", ID: id, Message: []byte(`{}`)}, Decision{}); fresh || err != nil || rec.State != Returned {
				t.Errorf("%s and put back: %v, %v", what, fresh, err)
			}
		}
	}
}

// What another process has removed meanwhile is left out, without an error.
func TestWhatWasRemovedMeanwhileIsLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := long(t, dir)
	defer j.Close()
	other, err := Open(t.Context(), dir, Self())
	must.Do(t, err)
	defer other.Close()
	if n := removeAll(t, j); n < 2 {
		t.Fatalf("%d parts were removed", n)
	}
	lived(t, j, "new", 1) // the last part may have had no call
	v := other.index.view()
	defer v.close()
	_, err = v.record(1)
	if !errors.Is(err, chain.ErrNoMark) {
		t.Fatalf("before it knows: %v", err)
	}
	if _, err := other.FindAny(t.Context(), "old-0"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if list, err := other.Calls(t.Context(), 0, 1000); err != nil || len(list) == 0 || len(list) == 100 {
		t.Errorf("%d calls, %v", len(list), err)
	}
}

// beginning is the directory of a log that another process makes when this one has looked.
type beginning struct {
	chain.Dir
	looked atomic.Bool
	then   func()
}

func (d *beginning) Names() ([]string, error) {
	names, err := d.Dir.Names()
	if !d.looked.Swap(true) {
		d.then()
	}
	return names, err
}

// A call that another process records while this one opens a new journal is not new later.
func TestACallOfWhoeverMadeTheJournalMeanwhileIsNotNew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := must.Get(open(t.Context(), dir, Self(), func(dir string) (files, error) {
		f, err := openFiles(dir)
		f.log = &beginning{Dir: f.log, then: func() {
			other, err := Open(t.Context(), dir, Self())
			if err != nil {
				t.Error(err)
				return
			}
			lived(t, other, "a", 1)
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		}}
		return f, err
	}))(t)
	defer j.Close()
	j.settle()
	j.settle() // drops the calls from the table
	if _, fresh, err := j.Begin(t.Context(), Call{Client: "agent", ID: "a-0", Message: []byte(`{}`)}, Decision{}); fresh || err != nil {
		t.Errorf("a call that ran is new: %v, %v", fresh, err)
	}
}

// An id may be as long as an older toold allowed.
func TestTheIndexKeepsLongIDs(t *testing.T) {
	t.Parallel()
	dir, id := t.TempDir(), strings.Repeat("x", inRecord+1)
	j := small(t, dir)
	if recorded, err := j.CancelEarly(t.Context(), "agent", nil, id, 5); err != nil || !recorded {
		t.Fatal(recorded, err)
	}
	lived(t, j, "a", 10)
	j.settle()
	must.Do(t, j.Close())
	j = small(t, dir)
	defer j.Close()
	if f := j.EarlyCancels()["agent"]; !slices.Equal(f, []string{id}) {
		t.Errorf("%d earlyCancels", len(f))
	}
}

// Files of the index that somebody wrote who knows their form end no process, and take no
// memory. What the log says is not changed by them.
func TestAHostileIndexEndsNothing(t *testing.T) {
	must.Long(t)
	t.Parallel()
	dir := t.TempDir()
	_, files := indexed(t, dir)
	for n, path := range files {
		text := must.Get(os.ReadFile(path))(t)
		s, f, err := parseChunk(bytes.NewReader(text), int64(len(text)))
		must.Do(t, err)
		for what, forge := range map[string]func(*tail){
			"a foreign row":      func(f *tail) { f.foreign = append(f.foreign, foreign{key: 1, row: 1 << 40}) },
			"a negative row":     func(f *tail) { f.foreign = append(f.foreign, foreign{key: 1, row: -1}) },
			"a loose row":        func(f *tail) { f.loose = append(f.loose, 1<<30) },
			"a loose row before": func(f *tail) { f.loose = append(f.loose, -1) },
			"many events":        func(f *tail) { flood(f.calls.Numbers[nEvents], 1<<50) },
			"all at the end":     func(f *tail) { flood(f.calls.Numbers[nAt], math.MaxInt64) },
			"messages elsewhere": func(f *tail) { flood(f.messages.Numbers[nAt], 0) },
			"keys of no call":    func(f *tail) { flood(f.calls.Numbers[nNumber], math.MaxUint64) },
			"large keys":         func(f *tail) { f.lastKey, f.lastSeq, f.most = math.MaxInt64-1, 1<<40, math.MaxInt64 },
			"no last record":     func(f *tail) { f.last.Number = 0 },
			"open calls":         func(f *tail) { f.open = append(f.open, -5, 0, 1<<50) },
			"many rows":          func(f *tail) { f.flat = columns.Table{Numbers: [][]uint64{make([]uint64, 1<<22)}} },
		} {
			what = fmt.Sprintf("chunk %d, %s", n, what)
			forged := must.Get(resume(hasher{id: s.id}, s, f, bytes.NewReader(text)))(t)
			forged = forged.freeze()
			forge(forged)
			p, err := forged.encode()
			if err == nil {
				err = os.WriteFile(path, p, 0o600)
			}
			must.Do(t, err)
			survived(t, what, dir)
		}
		for what, head := range map[string][]byte{
			"a text beside the log": {chunkForm << 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
			"a list of all":         append(bytes.Repeat([]byte{2}, 200), 0xff, 0xff, 0xff, 0x0f),
		} {
			must.Do(t, os.WriteFile(path, columns.Encode(head, forgedTables()...), 0o600))
			survived(t, fmt.Sprintf("chunk %d, %s", n, what), dir)
		}
		sparse := bytes.Clone(text[:len(text)/2])
		copy(sparse[len("toold-index\x01")+4:], []byte{0xff, 0xff, 0xff, 0xff})
		must.Do(t, errors.Join(os.WriteFile(path, sparse, 0o600), os.Truncate(path, 1<<40)))
		survived(t, fmt.Sprintf("chunk %d, large", n), dir)
		must.Do(t, os.WriteFile(path, text, 0o600))
	}
}

// A forged number does not say how much memory is taken.
func TestAForgedNumberTakesNoMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, files := indexed(t, dir)
	path := files[len(files)-1]
	text := must.Get(os.ReadFile(path))(t)
	s, f, err := parseChunk(bytes.NewReader(text), int64(len(text)))
	must.Do(t, err)
	forged := must.Get(resume(hasher{id: s.id}, s, f, bytes.NewReader(text)))(t)
	forged.lastKey = 1 << 50
	text, err = forged.freeze().encode()
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	must.Do(t, err)
	j := small(t, dir)
	defer j.Close()
	lived(t, j, "new", filterAfter+1)
	if j.beside.Wait(); j.write.table.filter == nil {
		t.Error("there is no filter")
	}
}

func flood(column []uint64, v uint64) {
	for i := range column {
		column[i] = v
	}
}

func forgedTables() []columns.Table {
	return []columns.Table{columns.NewTable(messageHashes, messageNumbers), columns.NewTable(callHashes, callNumbers), columns.NewTable(0, 1)}
}

// survived opens a journal whose index was forged, and asks it all.
func survived(t *testing.T, what, dir string) {
	t.Helper()
	j := small(t, dir)
	for _, id := range []string{"a-0", "open", "b-2", "none"} {
		_, _ = j.FindAny(t.Context(), id)
	}
	for range filterAfter + 1 {
		_, _ = j.FindAny(t.Context(), "none")
	}
	_, _ = j.Select(t.Context(), CallQuery{Text: "x", Limit: 1000})
	_, _ = j.List(t.Context(), Query{Ascending: true, Workspace: "/x"})
	_, _ = j.List(t.Context(), Query{Client: "agent"})
	_, _ = j.Undelivered(t.Context(), "agent", 10)
	if err := errors.Join(j.Close(), removeIndex(filepath.Join(dir, "journal"))); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	j = small(t, dir)
	if _, fresh, err := j.Begin(t.Context(), Call{Client: "agent", ID: "a-0", Message: []byte(`{}`)}, Decision{}); fresh {
		t.Errorf("%s: a call is new: %v", what, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
