package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

// The files of a journal.
const (
	segmentFile = "journal/00000001.log"
	headFile    = "../state.head/head"
)

// byteEdits are changes of its other files.
func byteEdits(t *testing.T, original string) map[string]func(t *testing.T, dir string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(original, segmentFile))
	noError(t, err)
	var at []int // where each record begins
	for n := 0; n < len(log); n += 57 + int(binary.BigEndian.Uint32(log[n:])) {
		at = append(at, n)
	}
	at = append(at, len(log))
	last := len(at) - 2
	all := map[string]func(t *testing.T, dir string){
		"all segments removed":  func(t *testing.T, dir string) { noError(t, os.Remove(filepath.Join(dir, segmentFile))) },
		"the directory removed": func(t *testing.T, dir string) { noError(t, os.RemoveAll(filepath.Join(dir, "journal"))) },
		"the head removed":      func(t *testing.T, dir string) { noError(t, os.Remove(filepath.Join(dir, headFile))) },
		"the head emptied":      func(t *testing.T, dir string) { noError(t, os.WriteFile(filepath.Join(dir, headFile), nil, 0o600)) },
	}
	write := func(name string, text ...[]byte) {
		all[name] = func(t *testing.T, dir string) {
			noError(t, os.WriteFile(filepath.Join(dir, segmentFile), bytes.Join(text, nil), 0o600))
		}
	}
	for _, text := range [2]string{largeArguments, largeResult} {
		edit := func(how string, do func(path string, text []byte) error) {
			all[fmt.Sprintf("a text of %d bytes %s", len(text), how)] = func(t *testing.T, dir string) {
				noError(t, do(blobPath(dir, text), []byte(text)))
			}
		}
		edit("removed", func(path string, _ []byte) error { return os.Remove(path) })
		edit("emptied", func(path string, _ []byte) error { return os.Truncate(path, 0) })
		edit("replaced", func(path string, text []byte) error {
			return os.WriteFile(path, bytes.Repeat([]byte("z"), len(text)), 0o600)
		})
		edit("longer", func(path string, text []byte) error { return os.WriteFile(path, append(text, 'x'), 0o600) })
		for _, at := range []int{0, len(text) / 2, len(text) - 1} {
			edit(fmt.Sprint("changed at ", at), func(path string, text []byte) error {
				text[at] ^= 1
				return os.WriteFile(path, text, 0o600)
			})
		}
	}
	write("emptied")
	write("two records swapped", log[:at[2]], log[at[3]:at[4]], log[at[2]:at[3]], log[at[4]:])
	write("a record removed", log[:at[3]], log[at[4]:])
	write("the first record removed", log[at[1]:])
	write("the last record removed", log[:at[last]])
	write("the last two removed", log[:at[last-1]])
	write("the end cut off", log[:len(log)-1])
	write("a record twice", log[:at[4]], log[at[3]:at[4]], log[at[4]:])
	write("the last record twice", log, log[at[last]:])
	write("something added", log, []byte("x"))
	write("something added behind zeros", log, make([]byte, 100), []byte("x"))
	write("a record added behind zeros", log, make([]byte, 100), log[at[last]:], make([]byte, 100))
	for n := range last + 1 {
		for field, offset := range map[string]int{"length": 3, "checksum": 4, "hash": 8, "number": 47, "kind": 48, "time": 56, "body": 57, "end": at[n+1] - at[n] - 1} {
			text := bytes.Clone(log)
			if at[n]+offset >= at[n+1] {
				continue // it has no body
			}
			text[at[n]+offset] ^= 1
			write(fmt.Sprintf("the %s of record %d", field, n+1), text)
		}
	}
	return all
}

// Texts that the journal keeps in files of their own.
var (
	largeArguments = `{"command":"` + strings.Repeat("a", 70_000) + `"}`
	largeResult    = `{"message_type":"tool_return_message","result":"` + strings.Repeat("r", 80_000) + `"}`
)

// blobPath is where the journal keeps a text.
func blobPath(dir, text string) string {
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	return filepath.Join(dir, "journal", "blobs", hash[:2], hash+".00000001")
}

// recordedCalls makes a journal with a call that was allowed, one that a person was
// asked about, one that was denied, one that only read, and a large one.
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
	output := spool.NewCapture(spool.Options{Dir: filepath.Join(dir, "spool", "1")})
	noError(t, j.Start(rec.Key, "1 2 x", filepath.Join(dir, "spool", "1")))
	output.Write(tools.Stdout, []byte("a line\n"))
	output.Write(tools.Stderr, []byte("an error\n"))
	output.Close()
	_, err = j.Finish(rec.Key, journal.Outcome{Status: "success", Output: output.Sum()}, build)
	noError(t, err)
	j.Delivered(rec.Key, failed)
	rec, _, err = j.Receive(ctx, call("asked", "git push"))
	noError(t, err)
	noError(t, j.Decide(rec.Key, journal.Waiting, journal.Decision{Action: "ask", By: "policy", Rule: "push"}))
	noError(t, j.Intend(rec.Key, journal.Decision{Action: "allow", By: "person", Person: person, Rule: "push"}))
	_, err = j.Finish(rec.Key, journal.Outcome{Status: "error"}, build)
	noError(t, err)
	_, _, err = j.Answer(ctx, call("denied", "rm -rf /"), false, journal.Outcome{Status: "error", ErrorType: "denied", Decision: journal.Decision{Action: "deny", By: "policy", Rule: "rm"}}, build)
	noError(t, err)
	_, _, err = j.Answer(ctx, call("read", "cat x"), true, journal.Outcome{Status: "success", Decision: journal.Decision{Action: "allow"}}, build)
	noError(t, err)
	large := call("large", "")
	large.Arguments = []byte(largeArguments)
	rec, _, err = j.Begin(ctx, large, journal.Decision{Action: "allow", By: "policy", Rule: "presets"})
	noError(t, err)
	_, err = j.Finish(rec.Key, journal.Outcome{Status: "success"}, func(seq int64) (string, []byte, error) {
		return fmt.Sprint("message-out-", seq), []byte(largeResult), nil
	})
	noError(t, err)
	noError(t, j.Close())
	removedFile(t, dir)
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// audit runs `toold audit` and returns its exit code and what it prints.
func audited(t *testing.T, dir string, args ...string) (code int, printed string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	noError(t, err)
	defer out.Close()
	code = run(t.Context(), append([]string{"audit", "--state-dir", dir}, args...), console.Console{In: os.Stdin, Out: out, Err: out})
	text, err := os.ReadFile(out.Name())
	noError(t, err)
	return code, string(text)
}

func TestVerifyFindsEveryEdit(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	original := filepath.Join(all, "state")
	recordedCalls(t, original, "bob")
	if code, printed := audited(t, original, "verify"); code != 0 || !strings.Contains(printed, "\n14:") {
		t.Fatalf("nothing was changed: code %d, %s", code, printed)
	}
	edits := 0
	found := func(name, text string, do func(t *testing.T, dir string)) {
		edits++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edited := t.TempDir()
			noError(t, os.CopyFS(edited, os.DirFS(all)))
			dir := filepath.Join(edited, "state")
			do(t, dir)
			for range 2 { // looking does not make it good
				if code, printed := audited(t, dir, "verify"); code != console.ExitTampered || !strings.Contains(printed, text) {
					t.Errorf("code %d, %s", code, printed)
				}
			}
		})
	}
	for name, do := range byteEdits(t, original) {
		text := ""
		if strings.HasPrefix(name, "a text of") {
			text = `of the tool call "large" of 2`
		}
		found(name, text, do)
	}
	t.Logf("%d edits", edits)
}

// TestVerifyFindsEveryEditOfTheIndex at some places of it; package journal does so at all of a small one.
func TestVerifyFindsEveryEditOfTheIndex(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	recordedCalls(t, dir, "bob")
	j, err := journal.Open(t.Context(), dir, journal.Self())
	noError(t, err)
	for range 1100 { // fewer are read from the log
		_, err := j.Append(journal.Message{Type: "note", Direction: journal.In, Body: []byte("{}")})
		noError(t, err)
	}
	noError(t, j.Close())
	files, err := filepath.Glob(filepath.Join(dir, "journal", "index", "*"))
	noError(t, err)
	if len(files) != 1 {
		t.Fatalf("the index is %q", files)
	}
	text, err := os.ReadFile(files[0])
	noError(t, err)
	edits := map[string][]byte{"emptied": nil, "cut off": text[:len(text)-1], "longer": append(bytes.Clone(text), 'x'), "something else": []byte("something else")}
	for i := range 40 {
		at := i * (len(text) - 1) / 39
		edited := bytes.Clone(text)
		edited[at] ^= 1
		edits[fmt.Sprint("changed at ", at)] = edited
	}
	for name, edited := range edits {
		noError(t, os.WriteFile(files[0], edited, 0o600))
		if code, printed := audited(t, dir, "verify"); code != console.ExitTampered || !strings.Contains(printed, "Nothing is lost") {
			t.Errorf("%s: code %d, %s", name, code, printed)
		}
	}
	noError(t, os.Remove(files[0]))
	if code, printed := audited(t, dir, "verify"); code != 0 {
		t.Errorf("without an index: code %d, %s", code, printed)
	}
}

// A record that was torn is cut off at the next start, and verify prints it from then on.
func TestVerifyPrintsWhatWasCutOff(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	recordedCalls(t, dir, "bob")
	text, err := os.ReadFile(filepath.Join(dir, segmentFile))
	noError(t, err)
	noError(t, os.WriteFile(filepath.Join(dir, segmentFile), append(text, "half of a record"...), 0o600))
	if code, printed := audited(t, dir, "verify"); code != console.ExitTampered || !strings.Contains(printed, "16 bytes follow record number 14") {
		t.Errorf("before a start: code %d, %s", code, printed)
	}
	j, err := journal.Open(t.Context(), dir, journal.Self())
	noError(t, err)
	noError(t, j.Close())
	if code, printed := audited(t, dir, "verify"); code != 0 || !strings.Contains(printed, "16 bytes were cut off") || !strings.Contains(printed, "|half of a record|") {
		t.Errorf("code %d, %s", code, printed)
	}
	if code, printed := audited(t, dir, "verify", "--json"); code != 0 || !strings.Contains(printed, `"cuts":[{"record":15,`) {
		t.Errorf("code %d, %s", code, printed)
	}
}

// The zeros that a killed toold leaves behind the last record are no edit. Those of somebody else
// cannot be told from them, and do no harm.
func TestVerifyPassesOverZeros(t *testing.T) {
	t.Parallel()
	for _, zeros := range []int{1, 57, 100_000, 1 << 20} {
		dir := filepath.Join(t.TempDir(), "state")
		recordedCalls(t, dir, "bob")
		text, err := os.ReadFile(filepath.Join(dir, segmentFile))
		noError(t, err)
		noError(t, os.WriteFile(filepath.Join(dir, segmentFile), append(text, make([]byte, zeros)...), 0o600))
		if code, printed := audited(t, dir, "verify"); code != 0 || !strings.Contains(printed, "\n14:") {
			t.Errorf("%d zeros: code %d, %s", zeros, code, printed)
		}
		goesOn(t, dir)
	}
}

// A call whose record is damaged is named, and those behind it.
func TestVerifyNamesTheCallsOfADamagedRecord(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	recordedCalls(t, dir, "bob")
	text, err := os.ReadFile(filepath.Join(dir, segmentFile))
	noError(t, err)
	text[bytes.Index(text, []byte("git push"))] ^= 1
	noError(t, os.WriteFile(filepath.Join(dir, segmentFile), text, 0o600))
	code, printed := audited(t, dir, "verify")
	for _, want := range []string{`of the tool call "asked" of 2`, `cannot be trusted: "`, `"denied" of 2`, `"read" of 2`, `"large" of 2`} {
		if code != console.ExitTampered || !strings.Contains(printed, want) {
			t.Errorf("code %d, %s", code, printed)
		}
	}
}

// TestVerifyFindsAJournalThatWasMadeAnew, and one whose note was removed.
func TestVerifyFindsAJournalThatWasMadeAnew(t *testing.T) {
	t.Parallel()
	original, anew := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "state")
	recordedCalls(t, original, "bob")
	recordedCalls(t, anew, "alice")
	_, link := audited(t, original, "verify")
	link = strings.TrimSpace(link)
	link = link[strings.LastIndex(link, "\n")+1:]
	if code, printed := audited(t, original, "verify", link); code != 0 {
		t.Errorf("its own link: %s", printed)
	}
	if code, printed := audited(t, anew, "verify"); code != 0 {
		t.Errorf("another journal: %s", printed)
	}
	if code, printed := audited(t, anew, "verify", link); code != console.ExitTampered || !strings.Contains(printed, "is not the one that was noted") {
		t.Errorf("another journal against a link: code %d, %s", code, printed)
	}
	text, err := os.ReadFile(filepath.Join(anew, segmentFile))
	noError(t, err)
	noError(t, os.WriteFile(filepath.Join(original, segmentFile), text, 0o600))
	wants := func(text string) {
		t.Helper()
		if code, printed := audited(t, original, "verify"); code != console.ExitTampered || !strings.Contains(printed, text) {
			t.Errorf("code %d, %s", code, printed)
		}
	}
	wants("it is not the one that was noted")
	noError(t, os.Remove(filepath.Join(original, headFile)))
	wants("the note of where the log ends is missing")
	noError(t, os.WriteFile(filepath.Join(original, headFile), nil, 0o600))
	wants("the note of where the log ends was changed")
	if code, printed := audited(t, original, "accept"); code != 0 {
		t.Errorf("accept: code %d, %s", code, printed)
	}
	if code, printed := audited(t, original, "verify"); code != 0 {
		t.Errorf("after accept: code %d, %s", code, printed)
	}
	noError(t, os.Remove(filepath.Join(original, segmentFile)))
	wants("is missing")
}
