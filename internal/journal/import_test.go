package journal

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toold/toold/internal/journal/legacy"
	"github.com/toold/toold/internal/must"

	"github.com/toold/toold/internal/journal/seal"
)

// oldJournal makes a state directory as 0.1.0-dev left it.
func oldJournal(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "state")
	text := must.Get(os.ReadFile("testdata/journal-7.sql"))(t)
	_, head, _ := strings.Cut(strings.Split(string(text), "\n")[0], "was: ")
	must.Do(t, os.Mkdir(dir, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "head"), []byte(head+"\n"), 0o600))
	must.Do(t, os.WriteFile(oldPath(dir), nil, 0o600))
	edit(t, dir, "PRAGMA journal_mode = wal; "+string(text))
	return dir
}

// edit changes the old journal.
func edit(t *testing.T, dir, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", oldPath(dir))
	must.Do(t, err)
	_, err = db.ExecContext(t.Context(), statements)
	must.Do(t, errors.Join(err, db.Close()))
}

// sound checks that a journal verifies.
func sound(t *testing.T, dir string) {
	t.Helper()
	if _, err := Verify(t.Context(), dir, seal.Checks{}, nil); err != nil {
		t.Error(err)
	}
}

// oldContents is what an old journal has.
func oldContents(t *testing.T, path string) (c contents) {
	t.Helper()
	db := must.Get(legacy.Open(t.Context(), path))(t)
	defer db.Close()
	must.Do(t, db.Messages(t.Context(), func(row legacy.Row) error {
		m, err := oldMessage(row)
		c.Messages = append(c.Messages, m)
		if err == nil && m.Direction == In && m.CallID != "" {
			old, arguments, err := oldRecord(db.Call(t.Context(), m.Client, m.AgentID, m.CallID))
			if err != nil {
				return nil // it is of no call
			}
			old.rec.Arguments = arguments
			c.Calls = append(c.Calls, old.rec)
		}
		return err
	}))
	c.EarlyCancels = map[string][]string{}
	must.Do(t, db.EarlyCancels(t.Context(), func(row legacy.Row) error {
		var client, id string
		err := row.Scan(&client, &id)
		c.EarlyCancels[client] = append(c.EarlyCancels[client], id)
		return err
	}))
	slices.SortFunc(c.Calls, func(a, b Record) int { return int(a.Key - b.Key) })
	c.Calls = slices.CompactFunc(c.Calls, func(a, b Record) bool { return a.Key == b.Key })
	return c
}

// The directory may be read-only.
func TestWithoutAnOldJournalNothingIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if calls, done, err := Import(t.Context(), dir, false); calls != 0 || done || err != nil {
		t.Errorf("got %d calls, %v, %v", calls, done, err)
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("made %v, %v", made, err)
	}
}

func TestAnOldJournalIsImportedWhole(t *testing.T) {
	t.Parallel()
	dir := oldJournal(t)
	want := oldContents(t, oldPath(dir))
	if _, err := Open(t.Context(), dir, Self()); err == nil || !strings.Contains(err.Error(), "toold journal import") {
		t.Errorf("before it is imported: %v", err)
	}
	calls, done, err := Import(t.Context(), dir, false)
	if err != nil || !done || calls != 6 {
		t.Fatalf("%d calls, %v, %v", calls, done, err)
	}
	if calls, done, err := Import(t.Context(), dir, false); err != nil || done {
		t.Errorf("again: %d calls, %v, %v", calls, done, err)
	}
	sound(t, dir)
	j := must.Get(Open(t.Context(), dir, "1 0 x"))(t)
	is := dump(t, j)
	for i := range is.Calls { // these were in the message only, or are in it now
		is.Calls[i].Result, is.Calls[i].ReturnedAt, want.Calls[i].ReturnedAt = nil, time.Time{}, time.Time{}
	}
	if diff := cmp.Diff(want, is, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-old +new):\n%s", diff)
	}
	open := must.Get(j.Unfinished(nil))(t)
	if len(open) != 2 || open[0].ID != "runs" || open[0].IntendedAt.IsZero() || open[1].ID != "waits" || open[1].State != Waiting {
		t.Errorf("open are %+v", open)
	}
	if rec, err := begin(t, j, "new"); err != nil || rec.Key != 7 || j.Last() != 12 {
		t.Errorf("the next call is %+v, %v", rec, err)
	}
	must.Do(t, j.Close())
	sound(t, dir)
	names := must.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	must.Match(t, []string{"journal", "journal.db.imported", "lock"}, names)
}

func TestAnOldJournalThatWasChangedIsImportedWhenAPersonSaysSo(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{
		`UPDATE calls SET decision_by = 'person' WHERE id = 3`,
		`UPDATE arguments SET text = '{}' WHERE call = 2`,
		`UPDATE messages SET body = '{}' WHERE seq = 4`,
		`DELETE FROM calls WHERE id = 1`,
		`DELETE FROM seals WHERE seq > 3`,
		`DELETE FROM seals; DELETE FROM calls; DELETE FROM messages; DELETE FROM sqlite_sequence`,
		`UPDATE seals SET body = replace(body, '"calls"', '"Calls"') WHERE seq = 2`,
	} {
		dir := oldJournal(t)
		edit(t, dir, statement)
		if _, _, err := Import(t.Context(), dir, false); !errors.Is(err, ErrTampered) {
			t.Errorf("%s: %v", statement, err)
		}
		if _, done, err := Import(t.Context(), dir, true); err != nil || !done {
			t.Errorf("%s, accepted: %v", statement, err)
		}
		j := must.Get(Open(t.Context(), dir, Self()))(t)
		must.Do(t, j.Close())
	}
}

// 0.1.0-dev recorded secrets as they came.
func TestSecretsInAnOldJournalAreMasked(t *testing.T) {
	t.Parallel()
	dir := oldJournal(t)
	secret := "gh" + "p_" + strings.Repeat("aB3dE6gH9", 4)
	edit(t, dir, `UPDATE arguments SET text = '{"command":"TOKEN=`+secret+` x"}' WHERE call = 1;
		UPDATE messages SET body = '{"text":"`+secret+`"}' WHERE seq < 5; UPDATE calls SET decision_reason = '`+secret+`' WHERE id = 2`)
	_, done, err := Import(t.Context(), dir, true)
	if err != nil || !done {
		t.Fatal(err)
	}
	must.Do(t, filepath.WalkDir(logDir(dir), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), secret) {
			t.Errorf("%s has the secret", d.Name())
		}
		return err
	}))
	j := must.Get(Open(t.Context(), dir, Self()))(t)
	defer j.Close()
	if text, err := j.Arguments(1); err != nil || !strings.Contains(string(text), "TOKEN=[redacted]") {
		t.Errorf("the arguments are %s, %v", text, err)
	}
}

// Wherever an import is cut off, the next one ends it.
func TestAnImportThatIsCutOffIsDoneAgain(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(t *testing.T, dir string){
		"while the log is written": func(t *testing.T, dir string) {
			ctx, stop := context.WithCancel(t.Context())
			stop()
			_, _ = copyOld(ctx, dir, logDir(dir)+".new", false)
			must.Do(t, os.MkdirAll(logDir(dir)+".new", 0o700))
			must.Do(t, os.WriteFile(filepath.Join(logDir(dir)+".new", "00000001.log"), []byte("half"), 0o600))
		},
		"before the new one takes its place": func(t *testing.T, dir string) {
			_, err := copyOld(t.Context(), dir, logDir(dir)+".new", false)
			must.Do(t, errors.Join(err, os.Rename(oldPath(dir), oldPath(dir)+importing)))
		},
		"after it did": func(t *testing.T, dir string) {
			_, err := importOld(t.Context(), dir, false)
			must.Do(t, errors.Join(err, os.Rename(oldPath(dir)+imported, oldPath(dir)+importing)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := oldJournal(t)
			at(t, dir)
			if _, _, err := Import(t.Context(), dir, false); err != nil {
				t.Fatal(err)
			}
			j := must.Get(Open(t.Context(), dir, Self()))(t)
			defer j.Close()
			calls := must.Get(j.Calls(t.Context(), 0, 100))(t)
			var ids []string
			for _, c := range calls {
				ids = append(ids, c.ID)
			}
			if !slices.Equal(ids, []string{"allowed", "asked", "denied", "read", "runs", "waits"}) {
				t.Errorf("calls are %q", ids)
			}
			if _, err := os.Stat(oldPath(dir) + imported); err != nil {
				t.Error(err)
			}
		})
	}
}
