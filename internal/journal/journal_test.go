package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

var allow = journal.Decision{
	Action: "allow", By: "person", Rule: "git-read", Source: "policy.yaml:3", Reason: "reads only", Person: "ada", Widened: `{"network":"full"}`,
}

func open(t testing.TB, dir string) *journal.Journal {
	t.Helper()
	j := must.Get(journal.Open(t.Context(), dir, journal.Self()))(t)
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// call is a call with every field set.
func call(id string) journal.Call {
	return journal.Call{
		Client: "agent", ID: id, Origin: message.Origin{ID: "message-1", OTID: "otid-1", AgentID: "agent-1", ConversationID: "conv-1", RunID: "run-1", StepID: "step-1"},
		Dialect: "letta_api", Tool: "Bash", Canonical: "bash",
		Arguments: []byte("{\"command\":\"git status\"}\x00"), ArgsHash: "h",
		MessageType: "approval_request_message", Message: []byte(`{"tool_call":{"tool_call_id":"` + id + `"}}`),
	}
}

func receive(t testing.TB, j *journal.Journal, c journal.Call) journal.Key {
	t.Helper()
	rec, fresh, err := j.Receive(t.Context(), c)
	if err != nil || !fresh {
		t.Fatalf("Receive(%s): fresh %v, %v", c.ID, fresh, err)
	}
	return rec.Key
}

func finish(j *journal.Journal, k journal.Key, o journal.Outcome) (int64, error) {
	return j.Finish(k, o, func(seq int64) (string, []byte, error) {
		return fmt.Sprintf("message-return-%d", k), fmt.Appendf(nil, `{"id":"message-return-%d","seq_id":%d}`, k, seq), nil
	})
}

// fails is for records that nobody waits for, and that must be made.
func fails(t testing.TB) func(error) {
	return func(err error) { t.Error(err) }
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error is %v, want %v", what, err, want)
	}
}

func TestACallIsRecordedFromRequestToDelivery(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := must.Get(journal.Open(t.Context(), dir, journal.Self()))(t)
	ctx := t.Context()
	k := receive(t, j, call("c1"))
	must.Do(t, j.Decide(k, journal.Waiting, journal.Decision{Action: "ask", By: "policy"}))
	must.Do(t, j.Intend(k, allow))
	must.Do(t, j.Start(k, "77 1 boot", "/spool/c1"))
	code := 3
	seq := must.Get(finish(j, k, journal.Outcome{Status: "error", ExitCode: &code, Signal: "SIGTERM", Sandbox: "{}", OTID: "otid-2"}))(t)
	j.Delivered(k, fails(t))
	j.Delivered(k, fails(t))
	must.Do(t, j.Close())

	j = open(t, dir)
	got := must.Get(j.FindAny(ctx, "c1"))(t)
	asked := call("c1")
	asked.MessageType, asked.Message, asked.Arguments = "", nil, nil
	want := journal.Record{
		Call: asked, Key: k, State: journal.Delivered, Decision: allow, Daemon: journal.Self(),
		Process: "77 1 boot", SpoolDir: "/spool/c1", Status: "error", ExitCode: &code, Signal: "SIGTERM", Sandbox: "{}",
		Result: fmt.Appendf(nil, `{"id":"message-return-%d","seq_id":%d}`, k, seq),
	}
	times := cmpopts.IgnoreFields(journal.Record{}, "ReceivedAt", "DecidedAt", "IntendedAt", "StartedAt", "ReturnedAt", "DeliveredAt")
	if diff := cmp.Diff(want, got, times); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if args, err := j.Arguments(k); err != nil || !bytes.Equal(args, call("c1").Arguments) {
		t.Errorf("arguments are %q, %v", args, err)
	}
	if got.IntendedAt.Before(got.ReceivedAt) || got.StartedAt.Before(got.IntendedAt) || got.ReturnedAt.Before(got.StartedAt) || got.DeliveredAt.Before(got.ReturnedAt) {
		t.Errorf("times are out of order: %+v", got)
	}
}

func TestARepeatedCallIsFoundAsItStands(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	k := receive(t, j, call("c1"))
	must.Do(t, j.Intend(k, allow))

	again := call("c1")
	again.ArgsHash, again.Tool = "other", "other"
	rec, fresh, err := j.Receive(t.Context(), again)
	if err != nil || fresh || rec.Key != k || rec.ArgsHash != "h" || rec.Tool != "Bash" || rec.State != journal.Intended {
		t.Errorf("second Receive: fresh %v, %+v, %v", fresh, rec, err)
	}
	if p, err := j.List(t.Context(), journal.Query{}); err != nil || len(p.Messages) != 1 {
		t.Errorf("%d messages are recorded, want 1 (%v)", len(p.Messages), err)
	}
	other := call("c1")
	other.Client = "someone else"
	if receive(t, j, other) == k {
		t.Error("another client's call with the same id is the same call")
	}
	sibling := call("c1")
	sibling.AgentID = "agent-2"
	if key := receive(t, j, sibling); key == k {
		t.Error("another agent's call with the same id is the same call")
	} else if rec, err := j.FindAny(t.Context(), "c1"); err != nil || rec.Key != key {
		t.Errorf("Find returned call %d, %v; want the latest of the client's agents, %d", rec.Key, err, key)
	}
	latest, err := j.FindAny(t.Context(), "c1")
	if err != nil || latest.AgentID != "agent-2" {
		t.Errorf("FindAny returned %+v, %v", latest, err)
	}
}

func TestACallIsIntendedAndReturnedOnce(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	ctx := t.Context()
	k := receive(t, j, call("c1"))
	early := make(chan error, 1)
	j.Delivered(k, func(err error) { early <- err })
	wantErr(t, "delivery before the return", <-early, journal.ErrState)
	wantErr(t, "a start before the intent", j.Start(k, "1", ""), journal.ErrState)
	must.Do(t, j.Intend(k, allow))
	wantErr(t, "second intent", j.Intend(k, allow), journal.ErrState)
	wantErr(t, "decision after the intent", j.Decide(k, journal.Decided, allow), journal.ErrState)
	_, err := finish(j, k, journal.Outcome{Status: "success"})
	must.Do(t, err)
	_, err = finish(j, k, journal.Outcome{Status: "error"})
	wantErr(t, "second return", err, journal.ErrState)
	wantErr(t, "intent after the return", j.Intend(k, allow), journal.ErrState)
	wantErr(t, "a call that is not there", j.Intend(k+1, allow), journal.ErrNotFound)
	_, err = j.Arguments(k + 1)
	wantErr(t, "arguments of nothing", err, journal.ErrNotFound)
	_, err = j.FindAny(ctx, "c2")
	wantErr(t, "finding nothing", err, journal.ErrNotFound)
}

func TestARefusedCallKeepsItsDecision(t *testing.T) {
	t.Parallel()
	j := open(t, t.TempDir())
	c := call("c1")
	c.Canonical = ""
	k := receive(t, j, c)
	deny := journal.Decision{Action: "deny", By: "policy", Rule: "r"}
	must.Get(finish(j, k, journal.Outcome{Status: "error", ErrorType: "denied", Canonical: "bash", Decision: deny}))(t)
	rec, err := j.FindAny(t.Context(), "c1")
	if err != nil || rec.Decision != deny || rec.ErrorType != "denied" || rec.Canonical != "bash" || !rec.IntendedAt.IsZero() || rec.ExitCode != nil {
		t.Errorf("record is %+v, %v", rec, err)
	}
}

func TestAReturnThatCannotBeMadeIsNotRecorded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	k := receive(t, j, call("c1"))
	broken := errors.New("broken")
	_, err := j.Finish(k, journal.Outcome{}, func(int64) (string, []byte, error) { return "", nil, broken })
	wantErr(t, "Finish", err, broken)
	seq, err := finish(j, k, journal.Outcome{Status: "success"})
	if err != nil || seq != 2 {
		t.Errorf("the next Finish got number %d, %v; want 2", seq, err)
	}
	verify(t, dir)
}

func TestOthersCannotReadTheJournal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state", "toold")
	receive(t, open(t, dir), call("c1"))
	for name, want := range map[string]os.FileMode{
		".": 0o700, "journal": 0o700, "journal/00000001.log": 0o600, "journal/index": 0o700, "../toold.head": 0o700, "../toold.head/head": 0o600,
	} {
		info := must.Get(os.Stat(filepath.Join(dir, name)))(t)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}

func TestADirectoryThatOthersMayChangeIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	for mode, accepted := range map[os.FileMode]bool{0o777: false, 0o770: false, 0o702: false, 0o700: true, 0o755: true} {
		dir := filepath.Join(t.TempDir(), "its state")
		must.Do(t, os.Mkdir(dir, 0o700))
		must.Do(t, os.Chmod(dir, mode))
		j, err := journal.Open(t.Context(), dir, journal.Self())
		if accepted {
			must.Do(t, err)
			must.Do(t, j.Close())
		} else if err == nil || !strings.Contains(err.Error(), "chmod go-w '"+dir+"'") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	note := filepath.Join(t.TempDir(), "state.head")
	must.Do(t, os.Mkdir(note, 0o700))
	must.Do(t, os.Chmod(note, 0o777))
	if _, err := journal.Open(t.Context(), strings.TrimSuffix(note, ".head"), journal.Self()); err == nil || !strings.Contains(err.Error(), "chmod go-w "+note) {
		t.Errorf("the note of the journal's end: %v", err)
	}
	dir := "/" // of root
	if os.Geteuid() == 0 {
		dir = t.TempDir()
		must.Do(t, os.Chown(dir, 12345, -1))
	}
	if _, err := journal.Open(t.Context(), dir, journal.Self()); err == nil || !strings.Contains(err.Error(), "belongs to") || !strings.Contains(err.Error(), "chown") {
		t.Errorf("a directory of another user: %v", err)
	}
}

func TestStrangePathsAreOpenedAsTheyAre(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b?c=d#e%41&_pragma=x")
	receive(t, open(t, dir), call("c1"))
	if _, err := os.Stat(filepath.Join(dir, "journal", "index")); err != nil {
		t.Error(err)
	}
}

// verify checks that nothing of a journal was changed.
func verify(t *testing.T, dir string) {
	t.Helper()
	must.Get(journal.Verify(t.Context(), dir, seal.Checks{}, nil))(t)
}

func TestARecordOfANewerTooldIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := journal.Open(t.Context(), dir, journal.Self())
	must.Do(t, err)
	must.Do(t, j.Close())
	log := openLog(t, dir)
	must.Do(t, log.Update(func(b *chain.Batch) error { _, err := b.Append(200, nil); return err }))
	must.Do(t, log.Close())
	_, err = journal.Open(t.Context(), dir, journal.Self())
	if err == nil || !strings.Contains(err.Error(), "newer toold") {
		t.Errorf("Open: error is %v", err)
	}
}

// openLog opens the log of a journal as another program that appends to it does.
func openLog(t *testing.T, dir string) *chain.Log {
	t.Helper()
	files := must.Get(chain.Directory(filepath.Join(dir, "journal")))(t)
	notes := must.Get(chain.Directory(dir + ".head"))(t)
	t.Cleanup(func() { must.Do(t, errors.Join(files.Close(), notes.Close())) })
	log := must.Get(chain.Open(chain.Options{Dir: files, Notes: notes, Note: "head", SegmentBytes: 1 << 20, Seen: func(chain.Record) error { return nil }}))(t)
	return log
}

// Under the race detector: calls of many goroutines through two handles of the
// same file, as two daemons have them.
func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	handles := make([]*journal.Journal, 2)
	var wg sync.WaitGroup
	for i := range handles {
		wg.Go(func() { handles[i] = open(t, dir) })
	}
	wg.Wait()
	const each = 20
	for g := range 8 {
		j := handles[g%len(handles)]
		wg.Go(func() {
			for i := range each {
				if err := cycle(t.Context(), j, call(fmt.Sprintf("%d-%d", g, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	verify(t, dir)
	_, err := handles[0].Calls(t.Context(), 0, 1) // what this one has still to write is written then
	must.Do(t, err)
	calls, err := handles[1].Calls(t.Context(), 0, 1000)
	if err != nil || len(calls) != 8*each {
		t.Errorf("%d calls are recorded, want %d (%v)", len(calls), 8*each, err)
	}
	for _, c := range calls {
		if c.State != journal.Delivered {
			t.Errorf("call %s is %s", c.ID, c.State)
		}
	}
}

// cycle records the whole life of a call.
func cycle(ctx context.Context, j *journal.Journal, c journal.Call) error {
	rec, fresh, err := j.Begin(ctx, c, allow)
	if err != nil || !fresh {
		return fmt.Errorf("begin: fresh %v, %w", fresh, err)
	}
	late := func(err error) { panic(err) } // when cycle may have returned long ago
	if err := j.Start(rec.Key, "77 1 boot", "/spool"); err != nil {
		return err
	}
	if _, err := finish(j, rec.Key, journal.Outcome{Status: "success"}); err != nil {
		return err
	}
	j.Delivered(rec.Key, late)
	return nil
}
