package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/journal"
)

// statement is what a run of `toold audit` must end with.
func statement(t *testing.T, dir string, code int, text string, args ...string) string {
	t.Helper()
	got, printed := audited(t, dir, args...)
	if got != code || !strings.Contains(printed, text) {
		t.Errorf("toold audit %q: code %d, want %d with %q: %s", args, got, code, text, printed)
	}
	return printed
}

// sealedStates are three journals: one, one whose history was made anew by somebody who could
// read its key, and one made anew without it. key is a file with the public key of the first.
func sealedStates(t *testing.T) (original, rewritten, anew, key string) {
	t.Helper()
	all := t.TempDir()
	original, rewritten, anew, key = filepath.Join(all, "a", "state"), filepath.Join(all, "b", "state"), filepath.Join(all, "c", "state"), filepath.Join(all, "key.pem")
	recordedCalls(t, original, "bob")
	noError(t, os.MkdirAll(rewritten+".head", 0o700))
	secret, err := os.ReadFile(original + ".head/key")
	noError(t, err)
	noError(t, os.WriteFile(rewritten+".head/key", secret, 0o600))
	recordedCalls(t, rewritten, "alice")
	recordedCalls(t, anew, "alice")
	noError(t, os.WriteFile(key, []byte(statement(t, original, 0, "PUBLIC KEY", "key")), 0o600))
	return original, rewritten, anew, key
}

func TestCheckpointsShowWhoHasSigned(t *testing.T) {
	t.Parallel()
	original, rewritten, anew, key := sealedStates(t)
	if info, err := os.Stat(original + ".head/key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info.Mode(), err)
	}
	statement(t, original, 0, "1 checkpoint, signed up to record 13 by key ", "verify", "--key", key)
	statement(t, original, 0, `"signed":13`, "verify", "--json", "--key", key)
	statement(t, anew, 0, "", "verify")
	statement(t, anew, console.ExitTampered, "was signed by another key", "verify", "--key", key)
	statement(t, rewritten, 0, "", "verify", "--key", key) // only an anchor shows it
	statement(t, original, console.ExitUsage, "cannot read the keys", "verify", "--key", original+".head/head")

	noError(t, os.Chmod(original+".head/key", 0o644))
	statement(t, original, console.ExitFailed, "chmod 600", "key")
	statement(t, original, 0, "", "verify", "--key", key) // without the private one
}

// anchored checks what an anchor at a place shows of the three journals and of the first one
// when an older copy of it was put back.
func anchored(t *testing.T, place string, write ...string) {
	t.Helper()
	original, rewritten, anew, key := sealedStates(t)
	backup := t.TempDir()
	noError(t, os.CopyFS(backup, os.DirFS(filepath.Dir(original))))
	statement(t, anew, 0, "14:", append([]string{"anchor"}, write...)...) // of another daemon
	recordAnother(t, original)
	statement(t, original, 0, "", append([]string{"anchor"}, write...)...)
	statement(t, original, 0, "", append([]string{"anchor"}, write...)...)
	recordAnother(t, original)

	statement(t, original, 0, "2 anchors fit", "verify", "--anchor", place, "--key", key)
	statement(t, anew, 0, "1 anchors fit", "verify", "--anchor", place)
	statement(t, rewritten, console.ExitTampered, "is not the one that was anchored", "verify", "--anchor", place)
	restored := filepath.Join(backup, "state")
	statement(t, restored, 0, "", "verify")
	statement(t, restored, console.ExitTampered, "is not the one that was anchored", "verify", "--anchor", place)
	other := filepath.Join(t.TempDir(), "state")
	recordedCalls(t, other, "carol")
	statement(t, other, console.ExitTampered, "none of the 3 anchors is signed by a key of this journal", "verify", "--anchor", place)
}

// recordAnother records a message, and a checkpoint at the end.
func recordAnother(t *testing.T, dir string) {
	t.Helper()
	j, err := journal.Open(t.Context(), dir, journal.Self())
	noError(t, err)
	_, err = j.Append(journal.Message{Type: "user_message", Direction: journal.In, Client: "x", Body: []byte("{}")})
	noError(t, err)
	noError(t, j.Close())
}

func TestAnAnchorInAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "anchors")
	original, _, _, _ := sealedStates(t)
	statement(t, original, console.ExitUsage, "name a place", "anchor")
	statement(t, original, console.ExitUsage, "names no place", "verify", "--anchor", path)
	statement(t, original, console.ExitFailed, "no such file", "verify", "--anchor", "file:"+path)
	anchored(t, "file:"+path, "--file", path)

	text, err := os.ReadFile(path)
	noError(t, err)
	noError(t, os.WriteFile(path, bytes.Replace(text, []byte(`"number":1`), []byte(`"number":2`), 1), 0o600))
	statement(t, original, console.ExitFailed, "was not signed by the key that it names", "verify", "--anchor", "file:"+path)
	noError(t, os.WriteFile(path, nil, 0o600))
	statement(t, original, console.ExitTampered, "there is no anchor", "verify", "--anchor", "file:"+path)
}

// TestAnAnchorInGit writes into a repository that would run programs whenever git does
// something in it.
func TestAnAnchorInGit(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	repository, ran := filepath.Join(all, "repository"), filepath.Join(all, "ran")
	git := func(args ...string) {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", repository}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	noError(t, os.Mkdir(repository, 0o700))
	git("init", "-q")
	program := filepath.Join(all, "program")
	noError(t, os.WriteFile(program, []byte("#!/bin/sh\necho ran >"+ran+"\n"), 0o700))
	for _, hook := range []string{"reference-transaction", "post-commit", "pre-commit", "commit-msg", "post-index-change"} {
		noError(t, os.WriteFile(filepath.Join(repository, ".git/hooks", hook), []byte("#!/bin/sh\nexec "+program+"\n"), 0o700))
	}
	for name, value := range map[string]string{
		"core.fsmonitor": program, "gpg.program": program, "commit.gpgSign": "true", "log.showSignature": "true", "core.pager": program,
		"core.sshCommand": program, "credential.helper": "!" + program, "core.editor": program, "remote.origin.url": "ext::" + program,
		"protocol.ext.allow": "always", "remote.origin.promisor": "true", "extensions.partialClone": "origin", "core.repositoryFormatVersion": "1",
	} {
		git("config", name, value)
	}
	anchored(t, "git:"+repository, "--git", repository)
	if text, err := os.ReadFile(ran); err == nil {
		t.Errorf("a program of the repository ran: %s", text)
	}
	original, _, _, _ := sealedStates(t)
	git("config", "hook.mine.command", program)
	statement(t, original, console.ExitFailed, "hook.mine.command", "anchor", "--git", repository)
	statement(t, original, console.ExitFailed, "cannot anchor in the git repository", "anchor", "--git", all)
}

func TestAnAnchorInPostgreSQL(t *testing.T) {
	t.Parallel()
	at := startPostgres(t).url("toold")
	anchored(t, at, "--postgres", at)
	original, _, _, _ := sealedStates(t)
	statement(t, original, console.ExitFailed, "cannot anchor in PostgreSQL", "anchor", "--postgres", at+"-none")
}

// TestAnExportIsVerifiedWithoutToold runs the script of the documentation.
func TestAnExportIsVerifiedWithoutToold(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python here")
	}
	original, _, anew, key := sealedStates(t)
	_, otherKey := audited(t, anew, "key")
	stranger := filepath.Join(t.TempDir(), "other.pem")
	noError(t, os.WriteFile(stranger, []byte(otherKey), 0o600))
	dir := filepath.Join(t.TempDir(), "export")
	statement(t, original, 0, dir, "export", "--to", dir)
	statement(t, original, console.ExitFailed, "exists", "export", "--to", dir)
	check := func(dir, key string) (good bool, said string) {
		out, err := exec.Command(python, "../../docs/verify_export.py", dir, key).CombinedOutput()
		return err == nil, string(out)
	}
	if good, said := check(dir, key); !good || !strings.Contains(said, "as it was exported: 10 messages, of record 14") {
		t.Errorf("what was exported: %s", said)
	}
	if good, said := check(dir, stranger); good || !strings.Contains(said, "NOT as it was exported: the manifest was not signed by this key") {
		t.Errorf("with another key: %s", said)
	}
	noError(t, os.Remove(blobPath(original, largeResult)))
	statement(t, original, console.ExitTampered, `"lost"`, "export")
	partly := filepath.Join(t.TempDir(), "export")
	statement(t, original, console.ExitTampered, "is not signed", "export", "--to", partly)
	if good, said := check(partly, key); good || !strings.Contains(said, "it has no manifest") {
		t.Errorf("without a text: %s", said)
	}
	for _, name := range []string{"messages.jsonl", "manifest.json", "manifest.sig"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		noError(t, err)
		edits := map[string][]byte{"longer": append(bytes.Clone(text), '\n'), "empty": {}}
		for _, at := range []int{0, len(text) / 2, len(text) - 1} {
			edits[fmt.Sprint("byte ", at)] = bytes.Join([][]byte{text[:at], {text[at] ^ 1}, text[at+1:]}, nil)
		}
		for edit, changed := range edits {
			copied := t.TempDir()
			noError(t, os.CopyFS(copied, os.DirFS(dir)))
			noError(t, os.WriteFile(filepath.Join(copied, name), changed, 0o600))
			if good, said := check(copied, key); good || !strings.Contains(said, "NOT as it was exported") {
				t.Errorf("%s %s: %s", name, edit, said)
			}
		}
	}
}

// An older copy is found though another key has signed since.
func TestAnAnchorShowsAnOlderCopyWhoseKeyWasAnother(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	dir, path := filepath.Join(all, "state"), filepath.Join(t.TempDir(), "anchors")
	recordedCalls(t, dir, "bob")
	other := filepath.Join(t.TempDir(), "state")
	recordedCalls(t, other, "carol")
	statement(t, other, 0, "", "anchor", "--file", path)
	statement(t, dir, 0, "", "anchor", "--file", path)
	backup := t.TempDir()
	noError(t, os.CopyFS(backup, os.DirFS(all)))
	noError(t, os.Remove(filepath.Join(all, signingKey)))
	recordAnother(t, dir)
	statement(t, dir, 0, "", "anchor", "--file", path)

	statement(t, dir, 0, "2 anchors fit, and 1 are of other journals", "verify", "--anchor", "file:"+path)
	restored := filepath.Join(backup, "state")
	statement(t, restored, 0, "", "verify")
	statement(t, restored, console.ExitTampered, "is not the one that was anchored", "verify", "--anchor", "file:"+path)
}
