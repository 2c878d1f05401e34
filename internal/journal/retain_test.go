package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/must"
)

// lived has some calls begin and end, in a journal of many parts.
func lived(t *testing.T, j *Journal, name string, n int) {
	t.Helper()
	for i := range n {
		rec, err := begin(t, j, fmt.Sprint(name, "-", i))
		if err == nil {
			err = finished(j, rec.Key)
		}
		must.Do(t, err)
	}
}

// removeAll removes all parts that can be.
func removeAll(t *testing.T, j *Journal) (removed int) {
	t.Helper()
	list := must.Get(j.Parts())(t)
	for _, p := range list {
		done := must.Get(j.Remove(p))(t)
		if done {
			removed++
		}
	}
	return removed
}

func dumped(t *testing.T, j *Journal) any {
	t.Helper()
	j.checkpointWhenDue() // not while the index is made anew
	j.settle()
	return dump(t, j)
}

// What is removed is gone from the log and from the index, as if that were made of the rest;
// numbers are not used again, and what is cancelled early stays so.
func TestPartsAreRemovedWithTheirCalls(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := openFaulty(t, dir)
	if recorded, err := j.CancelEarly(t.Context(), "agent", nil, "early", 10); err != nil || !recorded {
		t.Fatal(recorded, err)
	}
	lived(t, j, "first", 40)
	open := must.Get(begin(t, j, "open"))(t)
	lived(t, j, "second", 40)
	last := j.Last()
	before := must.Get(Verify(t.Context(), dir, seal.Checks{}, nil))(t)
	if n := removeAll(t, j); n == 0 {
		t.Fatal("nothing was removed")
	}
	calls, err := j.Calls(t.Context(), 0, 1000)
	if err != nil || len(calls) < 41 || calls[0].Key > open.Key {
		t.Errorf("%d calls from %d on are left, %v; %d is open", len(calls), calls[0].Key, err, open.Key)
	}
	must.Do(t, finished(j, open.Key))
	if n := removeAll(t, j); n == 0 {
		t.Error("nothing was removed when the call had ended")
	}
	if rec, err := j.FindAny(t.Context(), "open"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the call that ended: %+v, %v", rec, err)
	}
	r, err := Verify(t.Context(), dir, seal.Checks{}, nil)
	if err != nil || r.Gone == 0 {
		t.Errorf("%d records are gone, %v", r.Gone, err)
	}
	if _, err := Verify(t.Context(), dir, seal.Checks{Kept: before.Link}, nil); err != nil && (errors.Is(err, ErrTampered) || !strings.Contains(err.Error(), "was removed with its part")) {
		t.Errorf("a link from before: %v", err)
	}
	is := dumped(t, j)
	must.Do(t, removeIndex(filepath.Join(dir, "journal")))
	j, _ = openFaulty(t, dir)
	if diff := cmp.Diff(is, dumped(t, j)); diff != "" {
		t.Errorf("an index that is made anew (-old +new):\n%s", diff)
	}
	if got := j.EarlyCancels()["agent"]; len(got) != 1 {
		t.Errorf("cancelled early are %q", got)
	}
	if rec, err := begin(t, j, "first-0"); err != nil || rec.Key != 82 || j.Last() != last+2 {
		t.Errorf("call %d, message %d, %v", rec.Key, j.Last(), err)
	}
}

// Numbers of calls and messages are not used again, also when none is left.
func TestNumbersAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := openFaulty(t, dir)
	lived(t, j, "a", 5)
	for i := range 120 {
		if _, err := j.CancelEarly(t.Context(), "agent", nil, fmt.Sprint("later-", i), 3); err != nil {
			t.Fatal(err)
		}
	}
	if n := removeAll(t, j); n == 0 {
		t.Fatal("nothing was removed")
	}
	must.Do(t, removeIndex(filepath.Join(dir, "journal")))
	next, _ := openFaulty(t, dir)
	if rec, err := begin(t, next, "next"); err != nil || rec.Key != 6 || next.Last() != 11 {
		t.Errorf("call %d, message %d, %v", rec.Key, next.Last(), err)
	}
}

// A part that goes away otherwise is missing.
func TestAPartThatSomebodyRemovedIsMissed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := openFaulty(t, dir)
	lived(t, j, "a", 40)
	dumped(t, j) // a start reads only what the index does not have
	must.Do(t, os.Remove(filepath.Join(dir, "journal", "00000001.log")))
	if _, err := Verify(t.Context(), dir, seal.Checks{}, nil); !errors.Is(err, ErrTampered) {
		t.Errorf("verify: %v", err)
	}
	next, _ := openFaulty(t, dir)
	if _, err := begin(t, next, "next"); !errors.Is(err, ErrTampered) {
		t.Errorf("a journal without its first part takes a call: %v", err)
	}
}

const largeText = 100_000

// large begins and ends a call whose arguments and return are kept beside the log.
func large(t *testing.T, j *Journal, id string) Record {
	t.Helper()
	text := fmt.Appendf(nil, `{"command":"%s %s"}`, id, strings.Repeat("x", largeText))
	rec, _, err := j.Begin(t.Context(), Call{
		Client: "agent", ID: id, Arguments: text, MessageType: "approval_request_message", Message: fmt.Appendf(nil, `{"arguments":%s}`, text),
	}, Decision{Action: "allow"})
	if err == nil {
		_, err = j.Finish(rec.Key, Outcome{Status: "success"}, func(seq int64) (string, []byte, error) {
			return fmt.Sprint("message-", seq), fmt.Appendf(nil, `{"result":"%s"}`, strings.Repeat("y", largeText)), nil
		})
	}
	must.Do(t, err)
	return rec
}

func blobs(t *testing.T, dir string) []string {
	t.Helper()
	found := must.Get(filepath.Glob(filepath.Join(dir, "journal", "blobs", "*", "*")))(t)
	return found
}

func TestLargeTextsAreBesideTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := openFaulty(t, dir)
	one := large(t, j, "one")
	large(t, j, "two")
	info, err := os.Stat(filepath.Join(dir, "journal", "00000001.log"))
	if err != nil || info.Size() > 8000 {
		t.Errorf("the log is %v, %v", info, err)
	}
	if n := len(blobs(t, dir)); n != 3 {
		t.Errorf("there are %d texts beside it", n)
	}
	text, err := j.Arguments(one.Key)
	rec, found := j.FindAny(t.Context(), "one")
	if err != nil || found != nil || len(text) < largeText || len(rec.Result) < largeText {
		t.Errorf("%d bytes of arguments, %v; %d bytes of result, %v", len(text), err, len(rec.Result), found)
	}
	sound(t, dir)
	lived(t, j, "more", 40)
	removeAll(t, j)
	if left := blobs(t, dir); len(left) != 0 {
		t.Errorf("%q are left", left)
	}
}

// A text that is lost is named with its call, and nothing else is lost with it.
func TestALostTextIsNamedWithItsCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := openFaulty(t, dir)
	large(t, j, "one")
	large(t, j, "two")
	lived(t, j, "other", 1)
	dumped(t, j)
	for _, path := range blobs(t, dir) {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text[:100]), "two") {
			err = os.Remove(path)
		}
		must.Do(t, err)
	}
	_, err := Verify(t.Context(), dir, seal.Checks{}, nil)
	if !errors.Is(err, ErrTampered) || !strings.Contains(err.Error(), `of the tool call "two" of 2`) || strings.Contains(err.Error(), "other") {
		t.Errorf("verify: %v", err)
	}
	must.Do(t, removeIndex(filepath.Join(dir, "journal")))
	j, _ = openFaulty(t, dir)
	for key, want := range map[Key]string{1: `{"command":"one x`, 2: `{"lost":`, 3: ``} {
		if text, err := j.Arguments(key); err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("arguments of call %d: %.50s, %v", key, text, err)
		}
	}
}

func TestADamagedRecordIsNamedWithItsCallAndThoseAfterIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := openFaulty(t, dir)
	lived(t, j, "call", 3) // which is in no random id
	path := filepath.Join(dir, "journal", "00000001.log")
	text := must.Get(os.ReadFile(path))(t)
	for what, want := range map[string]string{
		`call-1`:    `tool call "call-1" of 2`,
		`message-4`: `tool call "call-1" of 2`, // its return
	} {
		edited := []byte(string(text))
		at := strings.Index(string(text), what)
		edited[at+len(what)] ^= 1
		must.Do(t, os.WriteFile(path, edited, 0o600))
		_, err := Verify(t.Context(), dir, seal.Checks{}, nil)
		if !errors.Is(err, ErrTampered) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `cannot be trusted: "call-2" of 2`) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWhatWasCutOffIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := openFaulty(t, dir)
	lived(t, j, "a", 1)
	dumped(t, j)
	path := filepath.Join(dir, "journal", "00000001.log")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString("half of a record")
		err = errors.Join(err, f.Close())
	}
	must.Do(t, err)
	j, _ = openFaulty(t, dir)
	lived(t, j, "b", 1)
	r, err := Verify(t.Context(), dir, seal.Checks{}, nil)
	if err != nil || len(r.Cuts) != 1 || string(r.Cuts[0].Text) != "half of a record" {
		t.Errorf("%+v, %v", r.Cuts, err)
	}
}

// A journal that takes nothing new for a reason says so, and lets what it has taken end.
func TestAJournalThatRefusesLetsCallsEnd(t *testing.T) {
	t.Parallel()
	j, _ := openFaulty(t, t.TempDir())
	rec := must.Get(begin(t, j, "running"))(t)
	why := errors.New("no room is left")
	j.Refuse(why)
	if _, err := begin(t, j, "new"); !errors.Is(err, why) {
		t.Errorf("a new call: %v", err)
	}
	if _, fresh, err := j.Begin(t.Context(), Call{Client: "agent", ID: "running"}, Decision{}); err != nil || fresh {
		t.Errorf("a repeat: fresh %v, %v", fresh, err)
	}
	if err := j.Ready(); !errors.Is(err, why) {
		t.Errorf("it is ready: %v", err)
	}
	if err := finished(j, rec.Key); err != nil {
		t.Error(err)
	}
	j.Refuse(nil)
	if err := j.Ready(); err != nil {
		t.Error(err)
	}
	lived(t, j, "new", 1)
}

// Parts are removed, and all is verified, while calls are made.
func TestPartsAreRemovedWhileCallsAreMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := openFaulty(t, dir)
	done := make(chan struct{})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 40 {
				rec, err := begin(t, j, fmt.Sprint(g, "-", i))
				if err == nil {
					err = finished(j, rec.Key)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() { all.Wait(); close(done) }()
	for removed, ended := 0, false; !ended || removed == 0; {
		select {
		case <-done:
			ended = true
		default:
		}
		removed += removeAll(t, j)
		if _, err := Verify(t.Context(), dir, seal.Checks{}, nil); err != nil && !strings.Contains(err.Error(), "bytes follow record") { // what is being written
			t.Fatal(err)
		}
	}
	is := dumped(t, j)
	must.Do(t, removeIndex(filepath.Join(dir, "journal")))
	next, _ := openFaulty(t, dir)
	if diff := cmp.Diff(is, dumped(t, next)); diff != "" {
		t.Errorf("an index that is made anew (-old +new):\n%s", diff)
	}
}

// What was recorded of a removal holds, also when the files stay.
func TestARemovalThatFailsIsDoneAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, disk := openFaulty(t, dir)
	if _, err := j.CancelEarly(t.Context(), "agent", nil, "early", 10); err != nil {
		t.Fatal(err)
	}
	lived(t, j, "a", 40)
	list := must.Get(j.Parts())(t)
	disk.stuck.Store(true)
	if done, err := j.Remove(list[len(list)-1]); err == nil {
		t.Errorf("removed: %v", done)
	}
	sound(t, dir)
	lived(t, j, "b", 5)
	disk.stuck.Store(false)
	if n := removeAll(t, j); n == 0 {
		t.Error("nothing was removed")
	}
	if r, err := Verify(t.Context(), dir, seal.Checks{}, nil); err != nil || r.Gone == 0 {
		t.Errorf("%d records are gone, %v", r.Gone, err)
	}
	if n, err := j.Calls(t.Context(), 0, 100); err != nil || len(n) == 0 || n[len(n)-1].ID != "b-4" {
		t.Errorf("%d calls, %v", len(n), err)
	}
}
