package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

// printed runs toold on a state directory and returns its exit code and what it prints.
func printed(t *testing.T, dir string, args ...string) (code int, text string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	noError(t, err)
	defer out.Close()
	code = run(t.Context(), append([]string{"--state-dir", dir}, args...), console.Console{In: os.Stdin, Out: out, Err: out})
	is, err := os.ReadFile(out.Name())
	noError(t, err)
	return code, string(is)
}

// A call of which a text is lost is shown with what is left, and with a note.
func TestALostTextIsShownAsLost(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{largeArguments: "outcome ", largeResult: "state      returned"} {
		dir := filepath.Join(t.TempDir(), "state")
		recordedCalls(t, dir, "bob")
		if code, text := printed(t, dir, "show", "large"); code != 0 || !strings.Contains(text, "outcome ") || strings.Contains(text, "lost ") {
			t.Fatalf("nothing is lost: code %d, %.300s", code, text)
		}
		noError(t, os.Remove(blobPath(dir, text)))
		for _, args := range [][]string{{"show", "large"}, {"show", "large", "--json"}} {
			code, text := printed(t, dir, args...)
			if code != console.ExitTampered || !strings.Contains(text, "removed or changed") {
				t.Errorf("%q: code %d, %.300s", args, code, text)
			}
			if len(args) == 2 && !strings.Contains(text, want) {
				t.Errorf("%q is not in %.300s", want, text)
			}
		}
		if code, text := printed(t, dir, "log"); code != 0 || !strings.Contains(text, "large") {
			t.Errorf("log: code %d, %s", code, text)
		}
	}
}

// What is shown of a call is all that was said of it, and nothing that was said of another agent's.
func TestACallIsShownWithAllMessagesOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	j, err := journal.Open(t.Context(), dir, journal.Self())
	noError(t, err)
	say := func(agent, text string, times int) {
		for range times {
			_, err := j.Append(journal.Message{Type: "approval_response_message", Direction: journal.In, Client: "x", Origin: message.Origin{AgentID: agent}, CallID: "c1", Body: fmt.Appendf(nil, `{"reason":%q}`, text)})
			noError(t, err)
		}
	}
	for _, agent := range []string{"", "one", "two"} {
		_, _, err := j.Receive(t.Context(), journal.Call{Client: "x", Origin: message.Origin{AgentID: agent}, ID: "c1", ArgsHash: "h", Message: []byte(`{}`)})
		noError(t, err)
	}
	say("", "of none", 3)
	say("one", "of one", 1100)
	say("two", "of two "+strings.Repeat("x", 60_000), 30)
	say("", "of none", 2)
	noError(t, j.Close())
	code, text := printed(t, dir, "show", "c1", "--json")
	calls := strings.Split(strings.TrimSpace(text), "\n")
	if code != 0 || len(calls) != 3 {
		t.Fatalf("code %d, %d calls: %.500s", code, len(calls), text)
	}
	for i, want := range []map[string]int{{"of none": 5}, {"of one": 1100}, {"of two": 30}} {
		for _, what := range []string{"of none", "of one", "of two"} {
			if n := strings.Count(calls[i], what); n != want[what] {
				t.Errorf("call %d is shown with %d messages %s, want %d", i, n, what, want[what])
			}
		}
	}
}

// What is left of a damaged journal is printed, and is not given for all of it.
func TestADamagedJournalIsNotPrintedAsAllOfIt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	recordedCalls(t, dir, "bob")
	noError(t, os.Remove(filepath.Join(dir, headFile)))
	for args, want := range map[string]string{
		"log": "audit accept", "log --json": "audit accept", "show none": "no call", "audit export": "audit accept",
		"audit export --to " + filepath.Join(t.TempDir(), "export"): "audit accept",
	} {
		code, text := printed(t, dir, strings.Fields(args)...)
		if code != console.ExitTampered || !strings.Contains(text, want) || !strings.Contains(text, "audit verify") {
			t.Errorf("%s: code %d, %.500s", args, code, text)
		}
	}
}

// After any damage of the log, toold audit accept lets toold go on, and loses nothing without a word.
func TestAcceptGoesOnAfterAnyDamage(t *testing.T) {
	t.Parallel()
	original := filepath.Join(t.TempDir(), "state")
	j, err := journal.Open(t.Context(), original, journal.Self())
	noError(t, err)
	for range 60 { // some segments
		_, err = j.Append(journal.Message{Type: "user_message", Direction: journal.In, Client: "x", Body: []byte(`{"text":"` + strings.Repeat("x", 60_000) + `"}`)})
		noError(t, err)
	}
	noError(t, j.Close())
	log := func(dir string, n int) string { return filepath.Join(dir, "journal", fmt.Sprintf("%08d.log", n)) }
	must.Get(os.Stat(log(original, 3)))(t)
	flip := func(path string, at int) error {
		text, err := os.ReadFile(path)
		if err == nil {
			text[at] ^= 1
			err = os.WriteFile(path, text, 0o600)
		}
		return err
	}
	add := func(path string, text []byte) error {
		is, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(path, append(is, text...), 0o600))
	}
	_, whole := audited(t, original, "verify")
	for what, do := range map[string]struct {
		damage func(dir string) error
		keeps  bool // all records
	}{
		"a byte of the first":         {damage: func(dir string) error { return flip(log(dir, 1), 500_000) }},
		"the first byte of the first": {damage: func(dir string) error { return flip(log(dir, 1), 60) }},
		"a byte of the second":        {damage: func(dir string) error { return flip(log(dir, 2), 500_000) }},
		"the first byte of the last":  {damage: func(dir string) error { return flip(log(dir, 4), 60) }},
		"the first removed":           {damage: func(dir string) error { return os.Remove(log(dir, 1)) }},
		"the second removed":          {damage: func(dir string) error { return os.Remove(log(dir, 2)) }},
		"one added":                   {damage: func(dir string) error { return os.WriteFile(log(dir, 9), nil, 0o600) }, keeps: true},
		"the next added":              {damage: func(dir string) error { return os.WriteFile(log(dir, 5), nil, 0o600) }, keeps: true},
		"zeros added":                 {damage: func(dir string) error { return add(log(dir, 1), make([]byte, 100)) }, keeps: true},
		"text added":                  {damage: func(dir string) error { return add(log(dir, 1), []byte("text")) }, keeps: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			noError(t, os.CopyFS(filepath.Dir(dir), os.DirFS(filepath.Dir(original))))
			noError(t, os.Chmod(filepath.Join(dir, "..", signingKey), 0o600))
			noError(t, errors.Join(os.RemoveAll(filepath.Join(dir, "journal", "index")), do.damage(dir)))
			code, said := audited(t, dir, "accept")
			if code != 0 || !strings.Contains(said, "set aside") {
				t.Fatalf("accept: code %d, %s", code, said)
			}
			if link := strings.TrimSpace(whole[strings.LastIndex(strings.TrimSpace(whole), "\n")+1:]); do.keeps {
				if code, said := audited(t, dir, "verify", link); code != 0 {
					t.Errorf("records are missing: code %d, %s", code, said)
				}
			}
			takesCalls(t, dir)
		})
	}
}
