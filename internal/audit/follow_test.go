package audit

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// A process that writes for long holds up the journal, but no one who follows it.
func TestWhoFollowsTheJournalWaitsForItsWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	record := must.Get(journal.Open(t.Context(), dir, journal.Self()))(t)
	defer record.Close()
	f := follower{Log: &Log{}, record: record}
	must.Do(t, f.begin(t.Context()))
	call := journal.Call{Client: "agent", ID: "call_1", Message: []byte(`{}`)}
	rec, _, err := record.Answer(t.Context(), call, false, journal.Outcome{Status: "success"}, func(int64) (string, []byte, error) { return "message-1", []byte(`{}`), nil })
	if err != nil {
		t.Fatal(err)
	}
	writer := must.Get(chain.Directory(filepath.Join(dir, "journal")))(t)
	defer writer.Close()
	release := must.Get(writer.Lock(time.Minute))(t)
	if _, err := record.OpenCalls(); !errors.Is(err, journal.ErrBusy) {
		t.Fatalf("the journal is not busy: %v", err)
	}
	if list, err := f.ended(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("while another process writes: %v, %v", list, err)
	}
	release()
	if list, err := f.ended(t.Context()); err != nil || len(list) != 1 || list[0] != rec.Key {
		t.Errorf("ended are %v, %v, want %d", list, err, rec.Key)
	}
}

func TestAgesAreDaysOrDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "12h": 12 * time.Hour, "0d": 0} {
		if got, err := Age(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	long := time.Since(time.Date(2020, 1, 31, 0, 0, 0, 0, time.Local))
	if got, err := Age("2020-01-31"); err != nil || got < long || got > time.Since(time.Date(2020, 1, 31, 0, 0, 0, 0, time.Local)) {
		t.Errorf("a date: got %v, %v, want %v", got, err, long)
	}
	for _, text := range []string{"", "d", "9999-01-01", "2020-13-01", "-1d", "-5h", "9999999999d", "soon"} {
		if got, err := Age(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
