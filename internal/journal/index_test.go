package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/must"
)

// contents is all that queries give.
type contents struct {
	Calls        []Record
	Messages     []Message
	EarlyCancels map[string][]string
}

func dump(t *testing.T, j *Journal) (c contents) {
	t.Helper()
	var err error
	if c.Calls, err = j.Select(t.Context(), CallQuery{Limit: 1 << 30, Ascending: true}); err != nil {
		t.Fatal(err)
	}
	for q := (Query{Ascending: true, Limit: 1000}); ; {
		p := must.Get(j.List(t.Context(), q))(t)
		c.Messages = append(c.Messages, p.Messages...)
		if q.After = p.NextAfter; !p.HasMore {
			break
		}
	}
	c.EarlyCancels = j.EarlyCancels()
	maps.DeleteFunc(c.EarlyCancels, func(_ string, ids []string) bool { return len(ids) == 0 })
	slices.SortFunc(c.Calls, func(a, b Record) int { return int(a.Key - b.Key) })
	return c
}

// small opens a journal whose chunks have few records.
func small(t *testing.T, dir string) *Journal {
	t.Helper()
	j := must.Get(open(t.Context(), dir, Self(), smallChunks))(t)
	return j
}

func smallChunks(dir string) (files, error) {
	f, err := openFiles(dir)
	f.chunk = 16
	return f, err
}

// indexed makes a journal with an index of some chunks, and returns what it has and the files.
func indexed(t *testing.T, dir string) (all contents, files []string) {
	t.Helper()
	j := small(t, dir)
	lived(t, j, "a", 12)
	must.Get(begin(t, j, "open"))(t)
	lived(t, j, "b", 3)
	if recorded, err := j.CancelEarly(t.Context(), "agent", nil, "early", 5); err != nil || !recorded {
		t.Fatal(recorded, err)
	}
	all = dump(t, j)
	must.Do(t, j.Close())
	files, err := filepath.Glob(filepath.Join(dir, "journal", indexName, "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("the index is %q, %v", files, err)
	}
	return all, files
}

// usable checks that a journal has what it had, and that verify agrees when it was opened.
func usable(t *testing.T, what, dir string, want contents) {
	t.Helper()
	j := small(t, dir)
	is := dump(t, j)
	if len(is.Calls) != len(want.Calls) || len(is.Messages) != len(want.Messages) || len(is.EarlyCancels["agent"]) != 1 {
		t.Errorf("%s: %d calls and %d messages, want %d and %d; earlyCancels %q", what, len(is.Calls), len(is.Messages), len(want.Calls), len(want.Messages), is.EarlyCancels)
	}
	for _, id := range []string{"a-0", "open", "b-2"} {
		if _, fresh, err := j.Begin(t.Context(), Call{Client: "agent", ID: id, Message: []byte(`{}`)}, Decision{}); err != nil || fresh {
			t.Errorf("%s: call %s is new: %v, %v", what, id, fresh, err)
		}
	}
	if open, err := j.OpenCalls(); err != nil || len(open) != 1 {
		t.Errorf("%s: open are %v, %v", what, open, err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// An index that was changed anywhere is noticed, by verify and when it is used, and made again.
func TestAnIndexThatIsDamagedIsMadeAgain(t *testing.T) {
	must.Long(t)
	t.Parallel()
	dir := t.TempDir()
	want, files := indexed(t, dir)
	for n, path := range files {
		text := must.Get(os.ReadFile(path))(t)
		step := 1
		if n > 0 {
			step = 97
		}
		for at := 0; at < len(text); at += step {
			flipped := bytes.Clone(text)
			flipped[at] ^= 0x10
			for what, edited := range map[string][]byte{"cut off": text[:at], "changed": flipped} {
				must.Do(t, os.WriteFile(path, edited, 0o600))
				if _, err := Verify(t.Context(), dir, seal.Checks{}, nil); !errors.Is(err, ErrTampered) {
					t.Fatalf("chunk %d %s at %d: verify: %v", n, what, at, err)
				}
				if at%(64*step) == 0 {
					usable(t, fmt.Sprintf("chunk %d %s at %d", n, what, at), dir, want)
				}
			}
		}
		must.Do(t, os.WriteFile(path, text, 0o600))
	}
	usable(t, "as it was", dir, want)
	sound(t, dir)
}

// What somebody wrote who knows the form of the files is found by verify.
func TestAnIndexThatSaysSomethingElseIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, files := indexed(t, dir)
	for _, path := range files {
		text := must.Get(os.ReadFile(path))(t)
		s, f, err := parseChunk(bytes.NewReader(text), int64(len(text)))
		must.Do(t, err)
		for column := range messageHashes {
			forged := must.Get(resume(hasher{id: s.id}, s, f, bytes.NewReader(text)))(t)
			forged.messages.Hashes[column][0]++
			p, err := forged.freeze().encode()
			if err == nil {
				err = os.WriteFile(path, p, 0o600)
			}
			must.Do(t, err)
			if _, err := Verify(t.Context(), dir, seal.Checks{}, nil); !errors.Is(err, ErrTampered) {
				t.Errorf("column %d: %v", column, err)
			}
		}
		must.Do(t, os.WriteFile(path, text, 0o600))
	}
}

// A chunk of another journal, or of another history of this one, is not used.
func TestAChunkOfAnotherJournalIsNotUsed(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	want, files := indexed(t, dir)
	_, others := indexed(t, other)
	for i := range files {
		text, err := os.ReadFile(others[i])
		if err == nil {
			err = os.WriteFile(files[i], text, 0o600)
		}
		must.Do(t, err)
	}
	if _, err := Verify(t.Context(), dir, seal.Checks{}, nil); !errors.Is(err, ErrTampered) {
		t.Errorf("verify: %v", err)
	}
	usable(t, "with the index of another", dir, want)
	sound(t, dir)
}

// Without a place for its index a journal is the same, and slower.
func TestAJournalWithoutRoomForItsIndexIsWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want, _ := indexed(t, dir)
	must.Do(t, removeIndex(filepath.Join(dir, "journal")))
	must.Do(t, os.WriteFile(filepath.Join(dir, "journal", indexName), nil, 0o600))
	usable(t, "with a file in its place", dir, want)
}

// The index of SQLite that an older toold made goes away.
func TestAnIndexOfAnOlderTooldGoesAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want, _ := indexed(t, dir)
	for _, name := range []string{"index.db", "index.db-wal", "index.db-shm"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "journal", name), []byte("SQLite"), 0o600))
	}
	usable(t, "beside an old one", dir, want)
	if left, _ := filepath.Glob(filepath.Join(dir, "journal", "index.db*")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// Several that make the index at the same time make the same.
func TestSeveralMakeTheSameIndex(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	indexed(t, dir)
	read := func() map[string]string {
		all := map[string]string{}
		files, _ := filepath.Glob(filepath.Join(dir, "journal", indexName, "*"))
		for _, path := range files {
			text := must.Get(os.ReadFile(path))(t)
			all[path] = string(text)
		}
		return all
	}
	want := read()
	for range 5 {
		must.Do(t, removeIndex(filepath.Join(dir, "journal")))
		var makers sync.WaitGroup
		for range 3 {
			makers.Go(func() {
				j, err := open(t.Context(), dir, Self(), smallChunks)
				if err == nil {
					err = j.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		makers.Wait()
		if !maps.Equal(want, read()) {
			t.Error("the index is another one")
		}
	}
}

// A call whose column and record cannot be read may be the one that is sent again: it does not run.
func TestACallWithoutItsColumnAndItsRecordIsNotNew(t *testing.T) {
	t.Parallel()
	made := t.TempDir()
	_, files := indexed(t, filepath.Join(made, "state"))
	log := must.Get(os.ReadFile(filepath.Join(made, "state", "journal", "00000001.log")))(t)
	log[bytes.Index(log, []byte("a-1"))] ^= 1 // the index is not made again from it
	text := must.Get(os.ReadFile(files[0]))(t)
	for at := 0; at < len(text); at += 5 {
		dir := filepath.Join(t.TempDir(), "state")
		must.Do(t, os.CopyFS(filepath.Dir(dir), os.DirFS(made)))
		must.Do(t, os.Chmod(keyPath(dir), 0o600))
		edited := bytes.Clone(text)
		edited[at] ^= 0x10
		must.Do(t, os.WriteFile(filepath.Join(dir, "journal", "00000001.log"), log, 0o600))
		must.Do(t, os.WriteFile(filepath.Join(dir, "journal", indexName, filepath.Base(files[0])), edited, 0o600))
		j := must.Get(open(t.Context(), dir, Self(), smallChunks))(t)
		if _, fresh, err := j.Begin(t.Context(), Call{Client: "agent", ID: "a-0", Message: []byte(`{}`)}, Decision{}); fresh {
			t.Errorf("byte %d of %d: a recorded call is new, %v", at, len(text), err)
		}
		_ = j.Close() // the log is damaged
	}
}
