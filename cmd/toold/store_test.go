package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/postgres"
	"github.com/toold/toold/internal/store"
	"github.com/toold/toold/message"
)

func TestATeamStoreListsTheCallsOfAllDaemons(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	s := teamStore(t)
	alice, bob := newMember(t, s, "alice"), newMember(t, s, "bob")
	alice.says(0, "one", "call", "bash", "echo one")
	bob.says(0, "two", "call", "bash", "echo two")
	alice.says(console.ExitDenied, "no-rm", "call", "bash", "rm -rf x")
	large := strings.Repeat("large ", 12_000)
	alice.says(0, "", "call", "write_file", "large.txt", "--content", large)
	alice.copied(s, "alice")
	bob.copied(s, "bob")

	team := func(args ...string) []string { return append(args, "--postgres", s.url("carol")) }
	lines := func(want int, text string, args ...string) {
		t.Helper()
		if printed := alice.says(0, text, team(append([]string{"log"}, args...)...)...); strings.Count(printed, "\n") != want {
			t.Errorf("toold log %q prints %s", args, printed)
		}
	}
	lines(4, "rm -rf x")
	lines(1, "echo two", "--daemon", "bob")
	lines(1, "rm -rf x", "--decision", "deny")
	lines(1, "write_file", "--tool", "write_file")
	lines(1, "write_file", "-n", "1")
	lines(1, "write_file", "--grep", "large large")
	lines(1, "echo one", "--grep", "one", "--daemon", "alice/")
	lines(2, "bash", "--workspace", alice.workspace, "--tool", "bash")
	lines(0, "", "--agent", "other")
	lines(4, "rm -rf x", "--agent", "agent") // the name of its token
	lines(0, "", "--since", "0h")
	lines(1, `"daemon":"bob/`, "--json", "--daemon", "bob")
	alice.says(0, "bob/", "audit", "store", s.url("carol"))
	alice.says(0, "it has the whole journal", "doctor")

	alice.says(1, "permission denied", "log", "--postgres", s.url("alice"))
	_, key := alice.toold("audit", "key")
	_, other := bob.toold("audit", "key")
	keys := filepath.Join(t.TempDir(), "keys.pem")
	noError(t, os.WriteFile(keys, []byte(key+other), 0o600))
	for user, m := range map[string]*member{"alice": alice, "bob": bob} {
		m.stop() // signs, and copies that if it can at once
		m.serve()
		m.copied(s, user)
		m.stop()
	}
	alice.says(0, "bob/", team("audit", "verify", "--key", keys)...)
	mayNot(t, s)
	edits(t, s, alice, team)
}

// mayNot tries what users may not do.
func mayNot(t *testing.T, s *postgresServer) {
	t.Helper()
	for _, user := range []string{"alice", "carol"} {
		db := s.open(user)
		for _, sql := range []string{
			`UPDATE toold_records SET agent = 'x'`, `DELETE FROM toold_records`, `DELETE FROM toold_texts`, `DROP TABLE toold_texts`, `TRUNCATE toold_records`,
			`INSERT INTO toold_texts (owner, daemon, segment, hash, text) VALUES ('bob', 'x', 1, '', '')`, `INSERT INTO toold_records (hash) VALUES ('')`,
			`SET ROLE toold_daemon; INSERT INTO toold_texts (owner, daemon, segment, hash, text) VALUES ('toold_daemon', 'x', 1, '', '')`,
		} {
			if err := db.Script(t.Context(), sql); err == nil {
				t.Errorf("%s may %s", user, sql)
			}
		}
	}
	rows, err := s.open("alice").Query(t.Context(), `SELECT DISTINCT owner FROM toold_records`)
	if err != nil || len(rows) != 1 || rows[0].Text(0) != "alice" {
		t.Errorf("alice sees rows of %q: %v", rows, err)
	}
	for _, sql := range []string{`SELECT record FROM toold_records`, `SELECT text FROM toold_texts`} {
		if err := s.open("alice").Script(t.Context(), sql); err == nil {
			t.Errorf("a daemon may %s", sql)
		}
	}
	if err := s.open("carol").Script(t.Context(), `INSERT INTO toold_texts (daemon, segment, hash, text) VALUES ('x', 1, '', '')`); err == nil {
		t.Error("carol may insert")
	}
}

// edits changes rows as an administrator can, and looks whether they are found.
func edits(t *testing.T, s *postgresServer, m *member, team func(...string) []string) {
	t.Helper()
	admin := s.open("toold")
	do := func(sql string) {
		t.Helper()
		noError(t, admin.Script(t.Context(), sql))
	}
	do(`CREATE TABLE kept AS SELECT * FROM toold_records; ALTER TABLE kept DROP COLUMN hash; CREATE TABLE texts AS SELECT * FROM toold_texts`)
	const some = ` WHERE owner = 'alice' AND kind = 1 AND tool = 'bash' AND decision = 'deny'`
	for sql, text := range map[string]string{
		`UPDATE toold_records SET record = set_byte(record, 70, get_byte(record, 70) # 1)` + some:  "of the tool call",
		`UPDATE toold_records SET record = set_byte(record, octet_length(record) - 1, 255)` + some: "of the tool call",
		`UPDATE toold_records SET decision = 'allow'` + some:                                       `says other than the record: "allow" instead of "deny"`,
		`UPDATE toold_records SET time = time + 1` + some:                                          "says other than the record",
		`UPDATE toold_records SET start = start + 1` + some:                                        "says other than the record",
		`UPDATE toold_records SET call = call + 1` + some:                                          "says other than the record",
		`DELETE FROM toold_records` + some:                                                         "is damaged",
		`DELETE FROM toold_records WHERE owner = 'alice' AND number = 1`:                           "record number 1 ",
		`UPDATE toold_texts SET text = 'x' WHERE owner = 'alice'`:                                  "is kept beside it",
		`DELETE FROM toold_texts WHERE owner = 'alice'`:                                            "is kept beside it",
		`UPDATE toold_records SET number = number + 1000 WHERE owner = 'alice' AND number = (SELECT max(number) FROM toold_records WHERE owner = 'alice')`: "alice/",
	} {
		do(sql)
		printed := m.says(console.ExitTampered, text, team("audit", "verify")...)
		if !strings.Contains(printed, "bob/") {
			t.Errorf("%s: bob's records are not verified: %s", sql, printed)
		}
		do(`DELETE FROM toold_records; DELETE FROM toold_texts; INSERT INTO toold_records SELECT * FROM kept; INSERT INTO toold_texts SELECT * FROM texts`)
	}
	// Rows that are none of toold's are not listed as calls, and hide none.
	do(`INSERT INTO toold_records SELECT 'bob', daemon, number + 9000, segment, start, '\x00', now(), kind, time + 1, call + 9000, client, agent, conversation, run, tool_call, workspace, tool, type, status, decision, decided_by FROM toold_records` + some)
	do(`INSERT INTO toold_records SELECT 'bob', daemon, number + 20000 + n, segment, start, record, now(), 1, 4000000000000000000, 0, client, agent, conversation, run, tool_call, workspace, tool, type, status, decision, decided_by FROM generate_series(1, 150) n, toold_records` + some)
	printed := m.says(0, "cannot be read", team("log", "-n", "4")...)
	if strings.Count(printed, "\n") != 5 || !strings.Contains(printed, "echo two") {
		t.Errorf("a listing with a row that is no record: %s", printed)
	}
	m.says(console.ExitTampered, "signed by another key", team("audit", "verify", "--daemon", "alice", "--key", signedBy(t, m))...)
	m.says(console.ExitTampered, "no record of such a daemon", team("audit", "verify", "--daemon", "dave")...)
}

// signedBy is a file with a key that has signed nothing here.
func signedBy(t *testing.T, m *member) string {
	t.Helper()
	stranger := filepath.Join(t.TempDir(), "state")
	recordedCalls(t, stranger, "bob")
	path := filepath.Join(m.home, "other.pem")
	noError(t, os.WriteFile(path, []byte(statement(t, stranger, 0, "PUBLIC KEY", "key")), 0o600))
	return path
}

// While the store is away calls run, and are there later.
func TestAStoreThatIsAwayGetsAllLater(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	s := teamStore(t)
	s.stop()
	alice := newMember(t, s, "alice")
	alice.says(0, "one", "call", "bash", "echo one")
	alice.says(0, "HOME=", "call", "bash", "env")
	for _, script := range []string{"env", "F=" + alice.passFile() + "; cat $F", "find / -name passwords -exec cat {} +", "cat /proc/*/environ"} {
		if _, printed := alice.toold("call", "bash", script); strings.Contains(printed, "unseen") {
			t.Errorf("%s prints %s", script, printed)
		}
	}
	eventually(t, "the log", func() bool {
		text, _ := os.ReadFile(alice.log())
		return strings.Contains(string(text), "cannot copy the journal to the team store")
	})
	if ready := alice.ready(); ready != "ready\nthe team store cannot be written, and gets what it lacks later\n" {
		t.Errorf("/readyz answers %q", ready)
	}
	alice.says(1, "FAIL  team store", "doctor")
	s.start()
	alice.copied(s, "alice")
	alice.says(0, "echo one", "log", "--postgres", s.url("carol"))
	eventually(t, "/readyz", func() bool { return alice.ready() == "ready\n" })
	s.stop()
	alice.says(0, "two", "call", "bash", "echo two")
	s.start()
	alice.copied(s, "alice")
	alice.says(0, "echo two", "log", "--postgres", s.url("carol"))

	// A daemon that was not there when the calls were made copies them.
	alice.stop()
	alice.says(0, "three", "call", "--private", "bash", "echo three")
	alice.serve()
	alice.copied(s, "alice")
	alice.says(0, "echo three", "log", "--postgres", s.url("carol"))
}

// A store that is killed in the middle has whole records, each once.
func TestAStoreThatIsKilledGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	s := teamStore(t)
	dir := filepath.Join(t.TempDir(), "state")
	j, err := journal.Open(t.Context(), dir, journal.Self())
	noError(t, err)
	defer j.Close()
	ctx, stop := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	for n := range 2 { // of the same identity
		kept, err := store.New(s.url("alice"), j, func(err error) { t.Log(n, "copying:", err) })
		noError(t, err)
		tasks.Go(func() { kept.Run(ctx) })
	}
	defer func() { stop(); tasks.Wait() }()
	build := func(seq int64) (string, []byte, error) {
		return fmt.Sprint("message-out-", seq), fmt.Appendf(nil, `{"message_type":"tool_return_message","seq_id":%d,"result":%q}`, seq, strings.Repeat("r", int(seq%7)*20_000)), nil
	}
	const rounds, each = 3, 150
	for round := range rounds {
		for i := range each {
			call := journal.Call{Client: "agent", ID: fmt.Sprint(round, "-", i), Tool: "bash", Origin: message.Origin{AgentID: fmt.Sprint("a\x00\xff\\'); DROP TABLE toold_texts; --", i, strings.Repeat("é", i))}, ArgsHash: "h", Arguments: []byte(`{}`), MessageType: "approval_request_message", Message: []byte(`{}`)}
			_, _, err := j.Answer(t.Context(), call, true, journal.Outcome{Status: "success", Decision: journal.Decision{Action: "allow"}}, build)
			noError(t, err)
			if i == each/2 { // while it copies
				eventually(t, "a copy of some", func() bool { return callsIn(t, s) > round*each })
				s.kill()
			}
		}
		s.start()
	}
	eventually(t, "the copy of all", func() bool {
		_, here := audited(t, dir, "verify")
		code, there := ran(t, "audit", "verify", "--postgres", s.url("carol"))
		return code == 0 && strings.Contains(there, " "+lastLine(here))
	})
	if n := callsIn(t, s); n != rounds*each {
		t.Errorf("%d calls are there, want %d", n, rounds*each)
	}
}

// Whatever a store does, calls run; and it gets all of them later.
func TestNoStoreHoldsACall(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	s := teamStore(t)
	alice := newMember(t, s, "alice")
	alice.copied(s, "alice")
	admin := s.open("toold")
	do := func(sql string) {
		t.Helper()
		noError(t, admin.Script(t.Context(), sql))
	}
	fails := func() {
		t.Helper()
		eventually(t, "/readyz", func() bool { return strings.Contains(alice.ready(), "cannot be written") })
	}
	alice.says(0, "one", "call", "bash", "echo one")
	alice.copied(s, "alice")

	do(`BEGIN; LOCK TABLE toold_records`) // it stalls
	alice.says(0, "two", "call", "bash", "echo two")
	eventually(t, "a copier that waits", func() bool {
		rows, err := admin.Query(t.Context(), `SELECT 1::bigint FROM pg_locks WHERE NOT granted AND relation = 'toold_records'::regclass`)
		noError(t, err)
		return len(rows) > 0
	})
	alice.says(0, "three", "call", "bash", "echo three")
	do(`COMMIT`)
	alice.copied(s, "alice")

	do(`CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$;
		CREATE TRIGGER no_room BEFORE INSERT ON toold_records EXECUTE FUNCTION no_room()`)
	alice.says(0, "four", "call", "bash", "echo four")
	fails()
	do(`DROP TRIGGER no_room ON toold_records`)
	alice.copied(s, "alice")
	alice.stop()

	for name, answer := range map[string]string{
		"garbage":              strings.Repeat("garbage ", 1000),
		"nothing":              "",
		"rows without columns": "R\x00\x00\x00\x08\x00\x00\x00\x00S\x00\x00\x00\x19server_encoding\x00UTF8\x00" + ready + strings.Repeat("1\x00\x00\x00\x042\x00\x00\x00\x04T\x00\x00\x00\x06\x00\x00D\x00\x00\x00\x06\x00\x00C\x00\x00\x00\x05\x00"+ready, 2) + "E\x00\x00\x00\x05\x00" + ready,
	} {
		alice.configureURL(answering(t, answer))
		alice.serve()
		alice.says(0, name, "call", "bash", "echo "+name)
		fails()
		alice.stop()
	}
	alice.configure(s, "alice")
	alice.serve()
	alice.copied(s, "alice")
	if n := callsIn(t, s); n != 7 {
		t.Errorf("%d calls are there, want 7", n)
	}
}

// ready is what PostgreSQL answers with when it waits for a statement.
const ready = "Z\x00\x00\x00\x05I"

// answering is the URL of a server that answers each connection in the same way.
func answering(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, answer)
				_, _ = io.Copy(io.Discard, conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); tasks.Wait() })
	return "postgres://alice@" + l.Addr().String() + "/postgres?sslmode=disable"
}

// callsIn is how many calls a store has.
func callsIn(t *testing.T, s *postgresServer) int {
	t.Helper()
	db, err := postgres.Open(t.Context(), s.url("carol"))
	noError(t, err)
	defer db.Close()
	rows, err := db.Query(t.Context(), `SELECT count(*) FROM toold_records WHERE kind = 1`)
	noError(t, err)
	return int(rows[0].Int(0))
}

// A store that has another history of the journal stays as it is.
func TestAnotherHistoryIsNotOverwritten(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	s := teamStore(t)
	alice := newMember(t, s, "alice")
	alice.says(0, "one", "call", "bash", "echo one")
	alice.copied(s, "alice")
	alice.stop()
	backup := filepath.Join(t.TempDir(), "state")
	noError(t, exec.Command("cp", "-a", filepath.Dir(alice.state()), backup).Run())
	alice.serve()
	alice.says(0, "two", "call", "bash", "echo two")
	alice.copied(s, "alice")
	alice.stop()

	noError(t, os.RemoveAll(filepath.Dir(alice.state())))
	noError(t, exec.Command("cp", "-a", backup, filepath.Dir(alice.state())).Run())
	admin := s.open("toold")
	before := everything(t, admin)
	alice.serve()
	alice.says(0, "three", "call", "bash", "echo three; echo and more; echo of it")
	eventually(t, "/readyz", func() bool {
		return alice.ready() == "ready\nthe team store has another history of this journal\n"
	})
	text, err := os.ReadFile(alice.log())
	if err != nil || !strings.Contains(string(text), "the store has another history of this journal") {
		t.Errorf("the log says %s", text)
	}
	alice.says(1, "connect as another user", "doctor")
	for range 3 { // longer than the journal was there
		alice.says(0, "four", "call", "bash", "echo four")
	}
	alice.says(1, "connect as another user", "doctor")
	if now := everything(t, admin); now != before {
		t.Errorf("the store was changed: %s, before %s", now, before)
	}
	alice.stop()
	alice.configure(s, "bob")
	alice.serve()
	alice.copied(s, "bob")
	alice.says(0, "bob/", "audit", "verify", "--postgres", s.url("carol"))
	if now := everything(t, admin); now == before {
		t.Error("nothing was written as bob")
	}
}

// everything is a hash of all rows.
func everything(t *testing.T, db *postgres.DB) string {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT md5(string_agg(r::text, ',' ORDER BY owner, daemon, number)) FROM toold_records r`)
	noError(t, err)
	return rows[0].Text(0)
}

func TestAStoreIsReachedByTLSOrByNone(t *testing.T) {
	t.Parallel()
	m := &member{t: t, home: t.TempDir(), workspace: t.TempDir()}
	m.says(1, "might be made without TLS: add sslmode=verify-full", "log", "--postgres", "postgres://alice:secret@db.example.invalid/audit")
	m.says(1, "cannot read the team store", "log", "--postgres", "postgres://alice@%zz/audit")
	if printed := m.says(1, "", "log", "--postgres", "postgres://alice:secret@db.example.invalid/audit"); strings.Contains(printed, "secret") {
		t.Errorf("the password is printed: %s", printed)
	}
	for _, url := range []string{"postgres://alice:se:cret@%zz/audit", "postgres://alice:se/cret@db", "postgres://alice@db/audit?sslmode=x&password=secret", "host=db password = 'a secret' sslmode=x", "alice:se:cret@db"} {
		if printed := m.says(1, "cannot read the team store", "log", "--postgres", url); strings.Contains(printed, "cret") {
			t.Errorf("a part of the password in %s is printed: %s", url, printed)
		}
	}
	m.says(2, "", "log", "--postgres", "x", "--follow")
	m.says(2, "name that with --postgres", "log", "--daemon", "alice")
	m.says(2, "name that with --postgres", "audit", "verify", "--daemon", "alice")
}
