package journal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What is left of a damaged journal is not given for all of it.
func TestNoListingOfADamagedJournalIsGivenForAllOfIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, long(t, dir).Close())
	must(t, os.Remove(filepath.Join(notesDir(dir), noteName)))
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
	list, err = j.Ended(ctx, "agent", 1000)
	told("Ended", len(list), err)
	list, err = j.Ran(ctx, "agent", "", "", 1000)
	told("Ran", len(list), err)
	list, err = j.Untold(ctx, "agent", 1000)
	told("Untold", len(list), err)
	_, err = j.FindAny(ctx, "none")
	told("FindAny", 0, err)
	_, err = j.Arguments(ctx, 1<<40)
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
