package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/journal"
)

// oldJournal makes a journal as a toold with schema 6 left it: calls had no workspace. Its
// calls are those of recordedCalls.
func oldJournal(t *testing.T, dir string) {
	t.Helper()
	for n := 1; n <= 6; n++ {
		schema, err := os.ReadFile(fmt.Sprintf("../../internal/journal/migrations/%d.sql", n))
		noError(t, err)
		noError(t, edit(t.Context(), dir, string(schema)))
	}
	rows, err := os.ReadFile("testdata/journal-6.sql")
	noError(t, err)
	noError(t, edit(t.Context(), dir, "DELETE FROM sqlite_sequence; "+string(rows)))
	var seq int64
	var hash []byte
	look(t, dir, "SELECT seq, hash FROM seals ORDER BY seq DESC LIMIT 1", &seq, &hash)
	noError(t, os.WriteFile(filepath.Join(dir, "head"), fmt.Appendf(nil, "%020d %x\n", seq, hash), 0o600))
}

// look reads one row of a journal.
func look(t *testing.T, dir, query string, into ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	noError(t, err)
	defer db.Close()
	noError(t, db.QueryRowContext(t.Context(), query).Scan(into...))
}

// TestVerifyCoversAJournalOfSchema6: what it had recorded before its migration, what comes
// after, and the workspace, of which the old seals say nothing.
func TestVerifyCoversAJournalOfSchema6(t *testing.T) {
	t.Parallel()
	old, both := t.TempDir(), t.TempDir()
	oldJournal(t, old)
	noError(t, os.CopyFS(both, os.DirFS(old)))
	verify := func(dir string, code int, text string) {
		t.Helper()
		if got, printed := audit(t, dir, "verify"); got != code || !strings.Contains(printed, text) {
			t.Errorf("code %d, want %d; %q has no %q", got, code, printed, text)
		}
	}
	verify(both, 0, "8:")
	version := 0
	look(t, both, "PRAGMA user_version", &version)
	if version != 7 {
		t.Errorf("the journal has schema %d, want 7", version)
	}
	j, err := journal.Open(t.Context(), both, journal.Self())
	noError(t, err)
	_, _, err = j.Answer(t.Context(), journal.Call{
		Client: "agent", ID: "new", Tool: "bash", ArgsHash: "h", Arguments: []byte(`{"command":"ls"}`), Workspace: "/src/app",
		MessageType: "approval_request_message", Message: []byte(`{}`),
	}, true, journal.Outcome{Status: "success", Decision: journal.Decision{Action: "allow"}}, func(seq int64) (string, []byte, error) {
		return fmt.Sprint("message-out-", seq), []byte(`{"message_type":"tool_return_message","result":"done"}`), nil
	})
	noError(t, err)
	noError(t, j.Close())
	verify(both, 0, "10:")

	for name, e := range edits() {
		if strings.HasPrefix(name, "a message added") || strings.HasPrefix(name, "a call added") {
			continue // their statements take the place of the new call
		}
		t.Run("after/"+name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			noError(t, os.CopyFS(dir, os.DirFS(both)))
			noError(t, edit(t.Context(), dir, e[0]))
			verifyEdited(t, dir)
		})
		if strings.Contains(e[0], "workspace") || strings.Contains(e[0], "CREATE VIEW") {
			continue // a column that it did not have; what cannot be migrated
		}
		t.Run("before/"+name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			noError(t, os.CopyFS(dir, os.DirFS(old)))
			noError(t, edit(t.Context(), dir, e[0]))
			verifyEdited(t, dir)
		})
	}
	for name, statement := range map[string]string{
		"workspace of an old call":     `UPDATE calls SET workspace = '/src/app' WHERE id = 1`,
		"workspace of the new call":    `UPDATE calls SET workspace = '/src/other' WHERE id = 5`,
		"workspace removed":            `UPDATE calls SET workspace = '' WHERE id = 5`,
		"workspace as a blob":          `UPDATE calls SET workspace = CAST(workspace AS BLOB) WHERE id = 5`,
		"no workspace as a blob":       `UPDATE calls SET workspace = CAST('' AS BLOB) WHERE id = 1`,
		"decision of the new call":     `UPDATE calls SET decision_by = 'person' WHERE id = 5`,
		"arguments of the new call":    `UPDATE arguments SET text = '{}' WHERE call = 5`,
		"result of the new call":       `UPDATE messages SET body = replace(body, 'done', 'DONE') WHERE seq = 10`,
		"time moved into workspace":    `UPDATE calls SET workspace = received_at WHERE id = 1`,
		"all workspaces made the same": `UPDATE calls SET workspace = '/src/app'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			noError(t, os.CopyFS(dir, os.DirFS(both)))
			noError(t, edit(t.Context(), dir, statement))
			verifyEdited(t, dir)
		})
	}
}

// verifyEdited expects that `audit verify` finds an edit, and finds it again.
func verifyEdited(t *testing.T, dir string) {
	t.Helper()
	for range 2 {
		if code, printed := audit(t, dir, "verify"); code != exitTampered {
			t.Errorf("code %d, %s", code, printed)
		}
	}
}
