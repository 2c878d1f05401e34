package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/console"
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
