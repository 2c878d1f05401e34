package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// A database of another encoding would refuse single texts, and all that comes behind them.
func TestAStoreHasToBeUTF8(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	s := teamStore(t)
	admin := s.open("toold")
	noError(t, admin.Script(t.Context(), `CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`))
	other := strings.Replace(s.url("toold"), "/postgres?", "/latin?", 1)
	const why = "the database has the encoding \"LATIN1\", and the record needs UTF8: make another one, with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
	m := &member{t: t, home: t.TempDir(), workspace: filepath.Join(t.TempDir(), "é❄")}
	noError(t, os.Mkdir(m.workspace, 0o700))
	m.says(1, why, "audit", "store", other)
	m.says(1, why, "log", "--postgres", other)
	m.says(1, why, "audit", "verify", "--postgres", other)
	m.configureURL(other)
	m.serve()
	eventually(t, "the refusal", func() bool {
		text, _ := os.ReadFile(m.log())
		return strings.Contains(string(text), `encoding \"LATIN1\"`)
	})
	m.says(1, `encoding "LATIN1"`, "doctor")
	m.says(0, "one", "call", "bash", "echo one")
	m.stop()

	// What a user prefers for other programs changes nothing.
	noError(t, admin.Script(t.Context(), `ALTER ROLE alice SET client_encoding = 'LATIN1'`))
	m.configure(s, "alice")
	m.serve()
	m.says(0, "❄", "call", "bash", "echo ❄")
	m.copied(s, "alice")
	m.says(0, "echo ❄", "log", "--postgres", s.url("carol"), "--workspace", m.workspace)
}

// escapes is a text that a terminal would obey, and that looks like further lines of toold.
const escapes = "\x1b[2J\x1b]0;title\a\u202eno\nall is verified"

// What others wrote into a database, or a server says, is printed as text.
func TestWhatAStoreSaysIsPrintedAsText(t *testing.T) {
	t.Parallel()
	s := teamStore(t)
	dir := filepath.Join(t.TempDir(), "state")
	recordedCalls(t, dir, "bob")
	admin := s.open("toold")
	row := `INSERT INTO toold_records SELECT $e$eve` + escapes + `$e$, $e$` + escapes + `$e$, %s, 1, 0, %s, now(), 1, 5, %[1]s, $e$` + escapes + `$e$, '', '', '', '', '', '', '', '', '', '' FROM generate_series(1, 5000) n`
	noError(t, admin.Script(t.Context(), fmt.Sprintf(row, "n", `'\x1b5b324a'::bytea`)))

	printed := func(code int, text string, args ...string) {
		t.Helper()
		got, printed := ran(t, args...)
		if got != code || !strings.Contains(printed, text) {
			t.Errorf("toold %q: code %d, want %d and %q: %.2000q", args, got, code, text, printed)
		}
		for _, line := range strings.Split(printed, "\n") {
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) && r != '\t' }) || strings.HasPrefix(line, "all is verified") {
				t.Errorf("toold %q prints %q", args, line)
			}
		}
		if n := strings.Count(printed, "\n"); n > 12 {
			t.Errorf("toold %q prints %d lines", args, n)
		}
	}
	printed(0, "4990 more calls cannot be read", "log", "--postgres", s.url("carol"))
	printed(6, "eve", "audit", "verify", "--postgres", s.url("carol"))
	printed(0, "eve", "audit", "store", s.url("carol"))

	refusal := "SFATAL\x00C28000\x00M" + escapes + "\x00\x00"
	refusal = "E" + string(binary.BigEndian.AppendUint32(nil, uint32(4+len(refusal)))) + refusal
	url := answering(t, refusal)
	printed(1, "all is verified", "log", "--postgres", url)
	printed(1, "all is verified", "audit", "verify", "--postgres", url)
	printed(1, "all is verified", "audit", "store", url)
	printed(1, "all is verified", "--state-dir", dir, "audit", "anchor", "--postgres", url)
	m := &member{t: t, home: t.TempDir(), workspace: t.TempDir()}
	m.configureURL(url)
	if printed := m.says(1, "all is verified", "doctor"); strings.Contains(printed, "\x1b") || strings.Contains(printed, "\nall is") {
		t.Errorf("doctor prints %q", printed)
	}
}
