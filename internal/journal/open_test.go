package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/journal"
)

func TestADeletedJournalTakesNothingMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	k := receive(t, j, call("before"))
	must(t, os.Remove(filepath.Join(dir, "journal.db")))
	if _, _, err := j.Receive(t.Context(), call("after")); !errors.Is(err, journal.ErrGone) {
		t.Errorf("a call was taken: %v", err)
	}
	if err := j.Intend(t.Context(), k, allow); !errors.Is(err, journal.ErrGone) {
		t.Errorf("an intent was taken: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "journal.db"), nil, 0o600))
	if err := j.Intend(t.Context(), k, allow); !errors.Is(err, journal.ErrGone) {
		t.Errorf("an intent was taken beside a new file: %v", err)
	}
}

func TestEndedAndOpenCallsAreListedApart(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	ctx := t.Context()
	must(t, cycle(ctx, j, call("first")))
	waiting := receive(t, j, call("waiting"))
	other := call("second")
	other.Client, other.BackgroundOf = "somebody", "first"
	must(t, cycle(ctx, j, other))
	ids := func(client string) (list []string) {
		t.Helper()
		ended, err := j.Ended(ctx, client, 10)
		must(t, err)
		for _, r := range ended {
			list = append(list, r.ID+" "+r.BackgroundOf)
		}
		return list
	}
	if diff := cmp.Diff([]string{"second first", "first "}, ids("")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"first "}, ids("agent")); diff != "" {
		t.Error(diff)
	}
	still, err := j.OpenCalls(ctx)
	must(t, err)
	if diff := cmp.Diff(map[journal.Key]bool{waiting: true}, still); diff != "" {
		t.Error(diff)
	}
}

func TestTheJournalIsReadBackwardsAndByItsLinks(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	ctx := t.Context()
	if _, _, err := j.Link(ctx); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an empty journal has a link: %v", err)
	}
	for _, id := range []string{"first", "second", "third"} {
		must(t, cycle(ctx, j, call(id)))
	}
	var ids []string
	for before := journal.Key(0); ; {
		page, err := j.Latest(ctx, before, 2)
		must(t, err)
		for _, rec := range page {
			ids, before = append(ids, rec.ID), rec.Key
		}
		if len(page) == 0 {
			break
		}
	}
	if diff := cmp.Diff([]string{"third", "second", "first"}, ids); diff != "" {
		t.Error(diff)
	}
	last, hash, err := j.Link(ctx)
	must(t, err)
	must(t, cycle(ctx, j, call("fourth")))
	for want, link := range map[bool]struct {
		number int64
		hash   []byte
	}{true: {last, hash}, false: {last + 1, hash}} {
		if linked, err := j.Linked(ctx, link.number, link.hash); err != nil || linked != want {
			t.Errorf("link %d:%x: %v, %v", link.number, link.hash, linked, err)
		}
	}
	if linked, err := j.Linked(ctx, last, []byte("other")); err != nil || linked {
		t.Errorf("another hash is a link (%v)", err)
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

// The schema of the first release, with a call in it, is brought up to date.
func TestAnOlderJournalIsTakenOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := os.ReadFile("migrations/1.sql")
	must(t, err)
	must(t, rawJournal(t, dir, string(first)+`; PRAGMA user_version = 1;
		INSERT INTO calls (client, tool_call_id, agent_id, conversation_id, run_id, step_id, otid, request_message_id,
			dialect, tool_name, args_hash, state, daemon, received_at)
		VALUES ('agent', 'old', '', '', '', '', '', '', 'openai', 'bash', 'h', 'received', '1 2 gone', 7)`))
	j := open(t, dir)
	rec, err := j.Find(t.Context(), "agent", "old")
	if err != nil || rec.ArgsHash != "h" || rec.BackgroundOf != "" {
		t.Errorf("the old call is %+v, %v", rec, err)
	}
	must(t, cycle(t.Context(), j, call("new")))
}
