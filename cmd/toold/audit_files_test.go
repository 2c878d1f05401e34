package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/journal"
)

const signingKey = "state.head/key"

// harmless are the files without recorded data: an edit changes nothing that is shown, and toold goes on.
var harmless = map[string]string{
	"state/lock":            "daemons lock it, and write nothing into it",
	"state/journal/lock":    "writers of the journal lock it, and write nothing into it",
	"state/journal/ballast": "it takes room, and is made again when it has not its size",
	signingKey:              "it signs what is recorded next; what was signed names the public key",
}

// TestEveryFileIsCheckedOrHasNothing edits each file that a daemon with calls leaves.
func TestEveryFileIsCheckedOrHasNothing(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	recordedCalls(t, filepath.Join(all, "state"), "bob")
	var files []string
	noError(t, filepath.WalkDir(all, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(all, path) // it is below
			files = append(files, name)
		}
		return err
	}))
	for _, name := range files {
		for edit, do := range editsOf(t, filepath.Join(all, name)) {
			t.Run(name+" "+edit, func(t *testing.T) {
				t.Parallel()
				edited := t.TempDir()
				noError(t, os.CopyFS(edited, os.DirFS(all)))
				noError(t, os.Chmod(filepath.Join(edited, signingKey), 0o600))
				noError(t, do(filepath.Join(edited, name)))
				dir := filepath.Join(edited, "state")
				code, printed := audited(t, dir, "verify")
				if _, is := harmless[name]; !is {
					if code != console.ExitTampered {
						t.Errorf("code %d, %s", code, printed)
					}
					return
				}
				if code != 0 {
					t.Errorf("code %d, %s", code, printed)
				}
				if name != signingKey { // toold does not start with a key that is none
					goesOn(t, dir)
				}
			})
		}
	}
}

// editsOf are edits of a file. That a file is missing is another test's.
func editsOf(t *testing.T, path string) map[string]func(path string) error {
	t.Helper()
	text, err := os.ReadFile(path)
	noError(t, err)
	all := map[string]func(path string) error{
		"longer": func(path string) error { return os.WriteFile(path, append(bytes.Clone(text), 'x'), 0o600) },
	}
	if len(text) > 0 {
		all["emptied"] = func(path string) error { return os.Truncate(path, 0) }
	}
	for n := range min(len(text), 5) {
		at := n * (len(text) - 1) / 4
		all[fmt.Sprint("changed at ", at)] = func(path string) error {
			edited := bytes.Clone(text)
			edited[at] ^= 1
			return os.WriteFile(path, edited, 0o600)
		}
	}
	return all
}

// goesOn has another daemon record a call, and verifies the journal.
func goesOn(t *testing.T, dir string) {
	t.Helper()
	j, err := journal.Open(t.Context(), dir, journal.Self())
	noError(t, err)
	rec, _, err := j.Begin(t.Context(), journal.Call{Client: "agent", ID: "another", Message: []byte(`{}`)}, journal.Decision{Action: "allow"})
	noError(t, err)
	if found, err := j.FindAs(t.Context(), "agent", "", "allowed"); err != nil || !strings.Contains(string(found.Result), "done") {
		t.Errorf("an earlier call is %+v, %v", found, err)
	}
	_, err = j.Finish(t.Context(), rec.Key, journal.Outcome{Status: "success"}, func(int64) (string, []byte, error) { return "m", []byte(`{}`), nil })
	noError(t, err)
	noError(t, j.Close())
	if code, printed := audited(t, dir, "verify"); code != 0 {
		t.Errorf("after another call: code %d, %s", code, printed)
	}
}
