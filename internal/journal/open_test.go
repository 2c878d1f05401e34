package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/must"
)

func TestADeletedJournalTakesNothingMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	k := receive(t, j, call("before"))
	must.Do(t, os.Remove(filepath.Join(dir, "journal", "00000001.log")))
	if _, _, err := j.Receive(t.Context(), call("after")); !errors.Is(err, chain.ErrGone) {
		t.Errorf("a call was taken: %v", err)
	}
	if err := j.Intend(k, allow); !errors.Is(err, chain.ErrGone) {
		t.Errorf("an intent was taken: %v", err)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "journal", "00000001.log"), nil, 0o600))
	if err := j.Intend(k, allow); !errors.Is(err, chain.ErrGone) {
		t.Errorf("an intent was taken beside a new file: %v", err)
	}
}

func TestEndedAndOpenCallsAreListedApart(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	ctx := t.Context()
	must.Do(t, cycle(ctx, j, call("first")))
	waiting := receive(t, j, call("waiting"))
	other := call("second")
	other.Client, other.BackgroundOf = "somebody", "first"
	must.Do(t, cycle(ctx, j, other))
	ids := func(client string) (list []string) {
		t.Helper()
		ended := must.Get(j.Ended(ctx, client, "", 10))(t)
		for _, r := range ended {
			list = append(list, r.ID+" "+r.BackgroundOf)
		}
		return list
	}
	must.Match(t, []string{"second first", "first "}, ids(""))
	must.Match(t, []string{"first "}, ids("agent"))
	still := must.Get(j.OpenCalls())(t)
	must.Match(t, map[journal.Key]bool{waiting: true}, still)
}

func TestTheJournalIsReadBackwardsAndByItsLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	ctx := t.Context()
	for _, id := range []string{"first", "second", "third"} {
		must.Do(t, cycle(ctx, j, call(id)))
	}
	var ids []string
	for before := journal.Key(0); ; {
		page := must.Get(j.Latest(ctx, before, 2))(t)
		for _, rec := range page {
			ids, before = append(ids, rec.ID), rec.Key
		}
		if len(page) == 0 {
			break
		}
	}
	must.Match(t, []string{"third", "second", "first"}, ids)
	link := must.Get(journal.Verify(ctx, dir, seal.Checks{}, nil))(t)
	must.Do(t, cycle(ctx, j, call("fourth")))
	if later, err := journal.Verify(ctx, dir, seal.Checks{Kept: link.Link}, nil); err != nil || later.Number <= link.Number {
		t.Errorf("it has link %d, %v", later.Number, err)
	}
	for _, other := range []seal.Link{{Number: link.Number + 1, Hash: link.Hash}, {Number: link.Number}, {Number: link.Number + 1000, Hash: link.Hash}} {
		if _, err := journal.Verify(ctx, dir, seal.Checks{Kept: other}, nil); !errors.Is(err, journal.ErrTampered) {
			t.Errorf("link %d:%x: %v", other.Number, other.Hash, err)
		}
	}
}

func TestDaemonsThatStartAndStopTogetherOpenTheJournal(t *testing.T) {
	t.Parallel()
	for range 20 {
		dir := t.TempDir()
		var daemons sync.WaitGroup
		for range 3 {
			daemons.Go(func() {
				j, err := journal.Open(t.Context(), dir, journal.Self())
				if err == nil {
					err = j.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		daemons.Wait()
	}
}
