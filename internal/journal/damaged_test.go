package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/must"
)

// What is left of a damaged journal is not given for all of it.
func TestNoListingOfADamagedJournalIsGivenForAllOfIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, long(t, dir).Close())
	must.Do(t, os.Remove(filepath.Join(notesDir(dir), noteName)))
	j := openLong(t, dir)
	defer j.Close()
	ctx, rows := t.Context(), map[string]int{}
	told := func(listing string, n int, err error) {
		if rows[listing] = n; !errors.Is(err, ErrTampered) {
			t.Errorf("%s: %d rows, %v", listing, n, err)
		}
	}
	page, err := j.List(ctx, Query{})
	told("List", len(page.Messages), err)
	list, err := j.Select(ctx, CallQuery{})
	told("Select", len(list), err)
	list, err = j.Calls(ctx, 0, 1000)
	told("Calls", len(list), err)
	list, err = j.Latest(ctx, 0, 1000)
	told("Latest", len(list), err)
	list, err = j.Ended(ctx, "agent", "", 1000)
	told("Ended", len(list), err)
	list, err = j.Ran(ctx, "agent", "", "", 1000)
	told("Ran", len(list), err)
	list, err = j.Undelivered(ctx, "agent", 1000)
	told("Undelivered", len(list), err)
	_, err = j.FindAny(ctx, "none")
	told("FindAny", 0, err)
	_, err = j.Arguments(1 << 40)
	told("Arguments", 0, err)
	if _, err := j.FindAny(ctx, "old-0"); err != nil {
		t.Errorf("a call that is left is not found: %v", err)
	}
	for _, listing := range []string{"List", "Select", "Calls", "Latest"} {
		if rows[listing] == 0 {
			t.Errorf("%s gives nothing of what is left", listing)
		}
	}
}

// What is lost, and an index that differs, hide nothing of what follows.
func TestEverythingThatWasChangedIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := openFaulty(t, dir)
	large(t, j, "one")
	large(t, j, "two")
	lived(t, j, "other", 3)
	dumped(t, j)
	for _, path := range blobs(t, dir) {
		must.Do(t, os.Remove(path))
	}
	lost := []string{`of the tool call "one"`, `of the tool call "two"`}
	reported := func(what string, want ...string) {
		t.Helper()
		_, err := Verify(t.Context(), dir, seal.Checks{}, nil)
		at := -1
		for _, text := range append(want, lost...) {
			before := at
			if at = strings.Index(fmt.Sprint(err), text); !errors.Is(err, ErrTampered) || at <= before {
				t.Errorf("%s: %q is not where it should be: %v", what, text, err)
			}
		}
	}
	reported("texts")
	index, err := filepath.Glob(filepath.Join(dir, "journal", indexName, "*"))
	if err != nil || len(index) == 0 {
		t.Fatal(index, err)
	}
	must.Do(t, os.WriteFile(index[0], nil, 0o600))
	reported("the index", "the index differs")
	path := filepath.Join(dir, "journal", "00000001.log")
	text := must.Get(os.ReadFile(path))(t)
	text[strings.LastIndex(string(text), "other-1")] ^= 1
	must.Do(t, os.WriteFile(path, text, 0o600))
	reported("the log", "the log is damaged", "the index differs")
}
