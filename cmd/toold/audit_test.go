package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/journal"
)

// edits are changes of a journal from outside, and what of it `audit verify` then names.
// Its calls are those of recordedCalls.
func edits() map[string][2]string {
	all := map[string][2]string{
		"an argument changed":       {`UPDATE arguments SET text = replace(text, 'push', 'pull') WHERE call = 2`, `arguments of call "asked"`},
		"arguments emptied":         {`UPDATE arguments SET text = '' WHERE call = 2`, `arguments of call "asked"`},
		"arguments removed":         {`DELETE FROM arguments WHERE call = 2`, `arguments of call "asked"`},
		"all arguments removed":     {`DELETE FROM arguments`, `arguments of call "allowed"`},
		"arguments swapped":         {`UPDATE arguments SET call = 9 WHERE call = 1; UPDATE arguments SET call = 1 WHERE call = 2; UPDATE arguments SET call = 2 WHERE call = 9`, `arguments of call "allowed"`},
		"a call removed":            {`DELETE FROM calls WHERE id = 2`, `call with number 2 was removed`},
		"a call and its text":       {`DELETE FROM arguments WHERE call = 2; DELETE FROM calls WHERE id = 2`, `call with number 2 was removed`},
		"the last call removed":     {`DELETE FROM arguments WHERE call = 4; DELETE FROM calls WHERE id = 4; UPDATE sqlite_sequence SET seq = 3 WHERE name = 'calls'`, `call with number 4 was removed`},
		"all calls removed":         {`DELETE FROM calls`, `call with number 1 was removed`},
		"a call added":              {`INSERT INTO calls SELECT 9, ` + copied + ` FROM calls WHERE id = 1`, `call "other" (number 9) was added`},
		"a result changed":          {`UPDATE messages SET body = replace(body, 'result', 'RESULT') WHERE tool_call_id = 'asked' AND direction = 'out'`, `message number 4 (tool_return_message of call "asked")`},
		"a time of a message":       {`UPDATE messages SET ts = ts + 1 WHERE seq = 2`, `message number 2`},
		"a message removed":         {`DELETE FROM messages WHERE seq = 3`, `message number 4`},
		"the end cut":               {`DELETE FROM messages WHERE seq > 5; UPDATE sqlite_sequence SET seq = 5 WHERE name = 'messages'`, `messages after number 5 are missing`},
		"the end cut everywhere":    {cutFrom("denied"), ``},
		"all messages removed":      {`DELETE FROM messages`, `missing`},
		"all, with the sequence":    {`DELETE FROM messages; DELETE FROM sqlite_sequence`, `missing`},
		"everything removed":        {`DELETE FROM messages; DELETE FROM arguments; DELETE FROM calls; DELETE FROM seals; DELETE FROM sqlite_sequence`, `the file head notes`},
		"a seal changed":            {`UPDATE seals SET body = replace(body, '"calls"', '"Calls"') WHERE seq = 2`, `seal number 2`},
		"a seal removed":            {`DELETE FROM seals WHERE seq = 2`, `seal number 3`},
		"the last seals removed":    {`DELETE FROM seals WHERE seq > 3`, ``},
		"all seals removed":         {`DELETE FROM seals`, ``},
		"a message added":           {`INSERT INTO messages SELECT 9, 'message-9', ` + `ts, message_type, direction, client, agent_id, conversation_id, run_id, step_id, otid, tool_call_id, status, body, hash, hash, group_id, sender_id FROM messages WHERE seq = 8`, `message number 9`},
		"a trigger":                 {`CREATE TRIGGER t AFTER UPDATE ON calls BEGIN SELECT 1; END`, `trigger "t"`},
		"a view instead of a table": {`ALTER TABLE calls RENAME TO rows; CREATE VIEW calls AS SELECT * FROM rows`, `view "calls"`},
	}
	for column, value := range map[string]string{
		"decision_action": "'allow'", "decision_by": "'person'", "decision_person": "'alice'", "decision_rule": "'other'",
		"decision_source": "'x:1'", "decision_reason": "'because'", "decision_widened": "'{}'", "decided_at": "1",
		"status": "'other'", "error_type": "'timeout'", "exit_code": "7", "signal": "'KILL'", "sandbox": "'{}'", "return_seq": "2", "returned_at": "1",
		"state": "'waiting'", "daemon": "'1 2 x'", "process": "'9'", "spool_dir": "'/x'", "intended_at": "1", "started_at": "1", "delivered_at": "1",
		"tool_name": "'read_file'", "canonical_tool": "'read_file'", "client": "'bob'", "agent_id": "'other'", "background_of": "'x'", "workspace": "'/elsewhere'", "received_at": "1", "args_hash": "'x'",
	} {
		all["the column "+column] = [2]string{"UPDATE calls SET " + column + " = " + value + " WHERE id = 3", `of call "denied" (number 3) was changed`}
	}
	return all
}

// copied are the columns of a call that a copy needs.
const copied = `client, 'other', agent_id, conversation_id, run_id, step_id, otid, request_message_id, dialect, tool_name, canonical_tool, args_hash, state,
	decision_action, decision_by, decision_rule, decision_source, decision_reason, daemon, process, spool_dir, status, error_type, exit_code, signal, sandbox,
	return_seq, received_at, decided_at, intended_at, started_at, returned_at, delivered_at, background_of, decision_person, decision_widened, group_id, sender_id, workspace`

// cutFrom removes all that was recorded from a call on, from each table.
func cutFrom(id string) string {
	return fmt.Sprintf(`DELETE FROM seals WHERE seq >= (SELECT min(seq) FROM seals WHERE json_extract(body, '$.message') >= (SELECT min(seq) FROM messages WHERE tool_call_id = '%[1]s'));
		DELETE FROM arguments WHERE call >= (SELECT id FROM calls WHERE tool_call_id = '%[1]s');
		DELETE FROM calls WHERE id >= (SELECT id FROM calls WHERE tool_call_id = '%[1]s');
		DELETE FROM messages WHERE seq >= (SELECT min(seq) FROM messages WHERE tool_call_id = '%[1]s');
		UPDATE sqlite_sequence SET seq = (SELECT max(seq) FROM messages) WHERE name = 'messages'`, id)
}

// recordedCalls makes a journal with a call that was allowed, one that a person was
// asked about, one that was denied, and one that runs.
func recordedCalls(t *testing.T, dir, person string) {
	t.Helper()
	ctx := t.Context()
	j, err := journal.Open(ctx, dir, journal.Self())
	noError(t, err)
	call := func(id, text string) journal.Call {
		return journal.Call{Client: "agent", ID: id, Tool: "bash", ArgsHash: "h-" + id, Arguments: []byte(`{"command":"` + text + `"}`), MessageType: "approval_request_message", Message: []byte(`{}`)}
	}
	build := func(seq int64) (string, []byte, error) {
		return fmt.Sprint("message-out-", seq), fmt.Appendf(nil, `{"message_type":"tool_return_message","seq_id":%d,"result":"done"}`, seq), nil
	}
	failed := func(err error) { t.Error(err) }
	rec, _, err := j.Begin(ctx, call("allowed", "ls"), journal.Decision{Action: "allow", By: "policy", Rule: "presets"})
	noError(t, err)
	j.Started(rec.Key, "1 2 x", "/spool/1", failed)
	_, err = j.Finish(ctx, rec.Key, journal.Outcome{Status: "success"}, build)
	noError(t, err)
	j.Delivered(rec.Key, failed)
	rec, _, err = j.Receive(ctx, call("asked", "git push"))
	noError(t, err)
	noError(t, j.Decide(ctx, rec.Key, journal.Waiting, journal.Decision{Action: "ask", By: "policy", Rule: "push"}))
	noError(t, j.Intend(ctx, rec.Key, journal.Decision{Action: "allow", By: "person", Person: person, Rule: "push"}))
	_, err = j.Finish(ctx, rec.Key, journal.Outcome{Status: "error"}, build)
	noError(t, err)
	_, _, err = j.Answer(ctx, call("denied", "rm -rf /"), false, journal.Outcome{Status: "error", ErrorType: "denied", Decision: journal.Decision{Action: "deny", By: "policy", Rule: "rm"}}, build)
	noError(t, err)
	_, _, err = j.Answer(ctx, call("read", "cat x"), true, journal.Outcome{Status: "success", Decision: journal.Decision{Action: "allow"}}, build)
	noError(t, err)
	noError(t, j.Close())
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// audit runs `toold audit` and returns its exit code and what it prints.
func audit(t *testing.T, dir string, args ...string) (code int, printed string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	noError(t, err)
	defer out.Close()
	code = run(t.Context(), append([]string{"audit", "--state-dir", dir}, args...), stdio{in: os.Stdin, out: out, err: out})
	text, err := os.ReadFile(out.Name())
	noError(t, err)
	return code, string(text)
}

// edit changes a journal as anybody can who may write the file.
func edit(ctx context.Context, dir, statements string) error {
	db, err := sql.Open("sqlite", filepath.Join(dir, "journal.db"))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA foreign_keys = off; PRAGMA legacy_alter_table = on; "+statements)
	return errors.Join(err, db.Close())
}

func TestVerifyFindsEveryEdit(t *testing.T) {
	t.Parallel()
	original := t.TempDir()
	recordedCalls(t, original, "bob")
	if code, printed := audit(t, original, "verify"); code != 0 || !strings.HasPrefix(printed, "8:") {
		t.Fatalf("nothing was changed: code %d, %s", code, printed)
	}
	for name, e := range edits() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			noError(t, os.CopyFS(dir, os.DirFS(original)))
			noError(t, edit(t.Context(), dir, e[0]))
			for range 2 { // looking does not make it good
				if code, printed := audit(t, dir, "verify"); code != exitTampered || !strings.Contains(printed, e[1]) {
					t.Errorf("code %d, %s", code, printed)
				}
			}
		})
	}
}

// TestVerifyFindsAJournalThatWasMadeAnew, and one whose note was removed.
func TestVerifyFindsAJournalThatWasMadeAnew(t *testing.T) {
	t.Parallel()
	original, anew := t.TempDir(), t.TempDir()
	recordedCalls(t, original, "bob")
	recordedCalls(t, anew, "alice")
	_, link := audit(t, original, "verify")
	link = strings.TrimSpace(link)
	if code, printed := audit(t, original, "verify", link); code != 0 {
		t.Errorf("its own link: %s", printed)
	}
	if code, printed := audit(t, anew, "verify"); code != 0 {
		t.Errorf("another journal: %s", printed)
	}
	if code, printed := audit(t, anew, "verify", link); code != exitTampered || !strings.Contains(printed, "is not the one that was noted") {
		t.Errorf("another journal against a link: code %d, %s", code, printed)
	}
	put := func(name string) {
		t.Helper()
		from, err := os.Open(filepath.Join(anew, name))
		noError(t, err)
		defer from.Close()
		to, err := os.Create(filepath.Join(original, name))
		noError(t, err)
		_, err = io.Copy(to, from)
		noError(t, errors.Join(err, to.Close()))
	}
	put("journal.db")
	wants := func(text string) {
		t.Helper()
		if code, printed := audit(t, original, "verify"); code != exitTampered || !strings.Contains(printed, text) {
			t.Errorf("code %d, %s", code, printed)
		}
	}
	wants("the file head notes")
	noError(t, os.Remove(filepath.Join(original, "head")))
	wants("the file head, which notes its end, is missing")
	noError(t, os.WriteFile(filepath.Join(original, "head"), nil, 0o600))
	wants("holds no note")
	if code, printed := audit(t, original, "accept"); code != 0 {
		t.Errorf("accept: code %d, %s", code, printed)
	}
	if code, printed := audit(t, original, "verify"); code != 0 {
		t.Errorf("after accept: code %d, %s", code, printed)
	}
	noError(t, os.Remove(filepath.Join(original, "journal.db")))
	wants("is missing")
}
