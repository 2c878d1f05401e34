package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	for _, name := range filesIn(t, all) {
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

// filesIn are the names of all files in a directory and below.
func filesIn(t *testing.T, all string) (files []string) {
	t.Helper()
	noError(t, filepath.WalkDir(all, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(all, path) // it is below
			files = append(files, name)
		}
		return err
	}))
	return files
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

// goesOn is takesCalls where an earlier call is known.
func goesOn(t *testing.T, dir string) {
	t.Helper()
	j, err := journal.Open(t.Context(), dir, journal.Self())
	noError(t, err)
	if found, err := j.FindAs(t.Context(), "agent", "", "allowed"); err != nil || !strings.Contains(string(found.Result), "done") {
		t.Errorf("an earlier call is %+v, %v", found, err)
	}
	noError(t, j.Close())
	takesCalls(t, dir)
}

// takesCalls has another daemon record a call, and verifies the journal.
func takesCalls(t *testing.T, dir string) {
	t.Helper()
	j, err := journal.Open(t.Context(), dir, journal.Self())
	noError(t, err)
	rec, _, err := j.Begin(t.Context(), journal.Call{Client: "agent", ID: "another", Message: []byte(`{}`)}, journal.Decision{Action: "allow"})
	noError(t, err)
	_, err = j.Finish(rec.Key, journal.Outcome{Status: "success"}, func(int64) (string, []byte, error) { return "m", []byte(`{}`), nil })
	noError(t, err)
	noError(t, j.Close())
	if code, printed := audited(t, dir, "verify"); code != 0 {
		t.Errorf("after another call: code %d, %s", code, printed)
	}
}

// TestNoKindOfFileStopsVerification puts something else in the place of each file.
func TestNoKindOfFileStopsVerification(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	recordedCalls(t, filepath.Join(all, "state"), "bob")
	kinds := map[string]func(path string) error{
		"a pipe":      func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
		"a directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"a device":    func(path string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) },
		"sparse":      func(path string) error { return os.Truncate(path, 1<<40) },
	}
	for _, name := range filesIn(t, all) {
		for kind, do := range kinds {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				edited := t.TempDir()
				noError(t, os.CopyFS(edited, os.DirFS(all)))
				noError(t, do(filepath.Join(edited, name)))
				code, printed := audited(t, filepath.Join(edited, "state"), "verify")
				if _, is := harmless[name]; code != console.ExitTampered && (!is || code != 0) {
					t.Errorf("code %d, %s", code, printed)
				}
			})
		}
	}
	for _, name := range []string{"journal/index", "journal/blobs"} {
		edited := t.TempDir()
		noError(t, os.CopyFS(edited, os.DirFS(all)))
		dir := filepath.Join(edited, "state")
		noError(t, errors.Join(os.RemoveAll(filepath.Join(dir, name)), os.WriteFile(filepath.Join(dir, name), nil, 0o600)))
		if code, printed := audited(t, dir, "verify"); code != console.ExitTampered {
			t.Errorf("%s is a file: code %d, %s", name, code, printed)
		}
	}
	noError(t, os.Mkdir(filepath.Join(all, "state/journal/index/d"), 0o700))
	if code, printed := audited(t, filepath.Join(all, "state"), "verify"); code != console.ExitTampered {
		t.Errorf("a directory in the index: code %d, %s", code, printed)
	}
}
