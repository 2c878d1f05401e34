package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

// dead records in the name of a daemon, and closes the journal.
func dead(t *testing.T, dir string, daemon string, do func(*journal.Journal)) {
	t.Helper()
	j := must.Get(journal.Open(t.Context(), dir, daemon))(t)
	do(j)
	must.Do(t, j.Close())
}

// daemon is one of this boot of the machine.
func daemon(pid int) string {
	_, boot, _ := strings.Cut(journal.Self(), " ")
	return strconv.Itoa(pid) + " " + boot
}

var notStarted = journal.Outcome{Status: "error", ErrorType: string(message.NotStartedAfterCrash)}

func states(list []journal.Record) map[string]journal.State {
	found := map[string]journal.State{}
	for _, r := range list {
		found[r.ID] = r.State
	}
	return found
}

func TestWhatStartedIsToldFromWhatDidNot(t *testing.T) {
	t.Parallel()
	another := "536870912 1 of another boot/pid:[1]"
	for name, c := range map[string]struct {
		daemon string
		want   journal.State // of a call that was only intended
	}{
		"the daemon was killed": {daemon(1 << 29), journal.Intended},
		"the machine crashed":   {another, journal.Running}, // the start may be lost
	} {
		dir := t.TempDir()
		dead(t, dir, c.daemon, func(j *journal.Journal) {
			receive(t, j, call("received"))
			for _, id := range []string{"intended", "started"} {
				rec, _, err := j.Begin(t.Context(), call(id), allow)
				must.Do(t, err)
				if id == "started" {
					must.Do(t, j.Start(rec.Key, "77 1 boot", ""))
				}
			}
		})
		want := map[string]journal.State{"received": journal.Received, "intended": c.want, "started": journal.Running}
		for pid := range 2 { // the second takes up what the first has not answered
			dead(t, dir, daemon(1<<30+pid), func(j *journal.Journal) {
				list := must.Get(j.Unfinished(nil))(t)
				if diff := cmp.Diff(want, states(list)); diff != "" {
					t.Errorf("%s, daemon %d: %s", name, pid, diff)
				}
			})
		}
	}
}

func TestACallThatDidNotStartIsRecordedAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var first, second journal.Key
	dead(t, dir, daemon(1<<29), func(j *journal.Journal) {
		rec, _, err := j.Begin(t.Context(), call("c1"), allow)
		must.Do(t, err)
		first = rec.Key
	})
	dead(t, dir, daemon(1<<30), func(j *journal.Journal) {
		must.Get(finish(j, first, notStarted))(t)
		other := call("c1")
		other.ArgsHash = "of other arguments"
		if rec, fresh, err := j.Begin(t.Context(), other, allow); err != nil || fresh || rec.Key != first {
			t.Errorf("another call with its id: fresh %v, %+v, %v", fresh, rec, err)
		}
		rec, fresh, err := j.Begin(t.Context(), call("c1"), allow)
		if second = rec.Key; err != nil || !fresh || second == first {
			t.Fatalf("the repeat: fresh %v, %+v, %v", fresh, rec, err)
		}
		j.Delivered(first, fails(t)) // its return was on its way
		if rec, fresh, err := j.Begin(t.Context(), call("c1"), allow); err != nil || fresh || rec.Key != second {
			t.Errorf("the repeat of the repeat: fresh %v, %+v, %v", fresh, rec, err)
		}
		must.Do(t, j.Start(second, "", ""))
		must.Get(finish(j, second, journal.Outcome{Status: "success"}))(t)
	})
	again := func(made string, j *journal.Journal) {
		if rec, fresh, err := j.Receive(t.Context(), call("c1")); err != nil || fresh || rec.Key != second || rec.Status != "success" {
			t.Errorf("index %s: the third time: fresh %v, %+v, %v", made, fresh, rec, err)
		}
		list := must.Get(j.Calls(t.Context(), 0, 10))(t)
		if len(list) != 2 || list[0].ErrorType != notStarted.ErrorType || list[1].Status != "success" {
			t.Errorf("index %s: the log has %+v", made, list)
		}
	}
	dead(t, dir, daemon(2), func(j *journal.Journal) { again("kept", j) })
	must.Do(t, os.RemoveAll(filepath.Join(dir, "journal", "index")))
	dead(t, dir, daemon(3), func(j *journal.Journal) { again("made anew", j) })
	verify(t, dir)
}

func TestAQuestionThatIsAskedAgainKeepsItsTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := call("c1")
	c.Kept = `{"program":{"name":"x"}}`
	dead(t, dir, daemon(1<<29), func(j *journal.Journal) {
		must.Do(t, j.Decide(receive(t, j, c), journal.Waiting, journal.Decision{Action: "ask", Rule: "first"}))
	})
	var asked journal.Record
	dead(t, dir, daemon(1<<30), func(j *journal.Journal) {
		none, err := j.Unfinished(func(r *journal.Record) bool { return r.Kept == "" })
		if err != nil || len(none) != 0 {
			t.Errorf("calls were taken that were not wanted: %+v, %v", none, err)
		}
		list := must.Get(j.Unfinished(nil))(t)
		asked = list[0]
		must.Do(t, j.Decide(asked.Key, journal.Waiting, journal.Decision{Action: "ask", Rule: "second"}))
	})
	j := open(t, dir)
	list := must.Get(j.Unfinished(nil))(t)
	got := list[0]
	if got.State != journal.Waiting || got.Decision.Rule != "second" || !got.DecidedAt.Equal(asked.DecidedAt) || got.Kept != c.Kept {
		t.Errorf("it is %+v, first asked at %v", got, asked.DecidedAt)
	}
	text, err := j.Arguments(got.Key)
	if err != nil || string(text) != string(c.Arguments) {
		t.Errorf("its arguments are %q, %v", text, err)
	}
}

// The log of 0.1.0-dev took 80 KiB a call.
func TestACallTakesLittleRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	const calls = 400
	for i := range calls {
		must.Do(t, cycle(t.Context(), j, call(fmt.Sprint(i))))
	}
	must.Do(t, os.Remove(filepath.Join(dir, "journal", "ballast")))
	if log, index := j.Bytes(); (log+index)/calls > 4<<10 {
		t.Errorf("a call takes %d bytes of the log and %d of the index", log/calls, index/calls)
	}
}
