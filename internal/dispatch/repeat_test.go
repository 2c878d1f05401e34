package dispatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// broken is a way in which a journal can be read and not written, or not even read.
type broken struct {
	name    string
	do      func(t *testing.T, dir string)
	unknown bool // what is not in the file that was opened may be in another
}

// ways are all of them. Root has every permission: conformance tries that as another
// user.
func ways() []broken {
	file := func(dir string) string { return filepath.Join(dir, "journal", "00000001.log") }
	all := []broken{
		{"moved", func(t *testing.T, dir string) { must.Do(t, os.Rename(file(dir), file(dir)+".away")) }, true},
		{"deleted", func(t *testing.T, dir string) { must.Do(t, os.Remove(file(dir))) }, true},
		{"replaced", func(t *testing.T, dir string) {
			must.Do(t, os.Rename(file(dir), file(dir)+".away"))
			must.Do(t, os.WriteFile(file(dir), nil, 0o600))
		}, true},
		{"locked", func(t *testing.T, dir string) {
			log := must.Get(chain.Directory(filepath.Join(dir, "journal")))(t)
			must.Get(log.Lock(time.Minute))(t)
			t.Cleanup(func() { log.Close() })
		}, false},
		{"without permission", func(t *testing.T, dir string) {
			must.Do(t, os.Chmod(dir, 0))
			t.Cleanup(func() { must.Do(t, os.Chmod(dir, 0o700)) })
		}, true},
	}
	if os.Getuid() == 0 {
		all = all[:len(all)-1]
	}
	return all
}

// TestARepeatIsAnsweredThoughNothingCanBeJournalled: only what certainly has not run is
// said not to have.
func TestARepeatIsAnsweredThoughNothingCanBeJournalled(t *testing.T) {
	t.Parallel()
	for _, way := range ways() {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, policy.Allow, &probe{})
			b.journal.WaitForLock(50 * time.Millisecond)
			first := b.call(t, "call_1", `{}`)
			way.do(t, b.dir)
			for _, args := range []string{`{}`, `{ }`} {
				again := b.call(t, "call_1", args)
				if again.Return == nil || !again.Return.Replayed || again.Return.ID != first.Return.ID || again.Return.Result != first.Return.Result {
					t.Errorf("got %+v, want a replay of %+v", again.Return, first.Return)
				}
			}
			if e := b.call(t, "call_1", `{"other":1}`).Err; e == nil || !strings.Contains(e.Message, "other arguments") {
				t.Errorf("other arguments: %v", e)
			}
			fresh := b.call(t, "call_2", `{}`).Return
			if said := strings.Contains(fresh.Result, "nothing ran"); fresh.Status != "error" || said == way.unknown || way.unknown != strings.Contains(fresh.Result, "unknown") {
				t.Errorf("a new call: %q", fresh.Result)
			}
			if n := b.tool.ran.Load(); n != 1 {
				t.Errorf("the tool ran %d times", n)
			}
		})
	}
}

// TestAReturnThatIsOnlyInMemoryIsThatOfTheRepeat: the call ran, and could not be
// journalled when it ended.
func TestAReturnThatIsOnlyInMemoryIsThatOfTheRepeat(t *testing.T) {
	t.Parallel()
	for _, way := range ways() {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			var dir atomic.Value
			b := newBench(t, policy.Allow, &probe{run: func(context.Context, tools.IO) tools.Result {
				way.do(t, dir.Load().(string))
				return tools.Result{Text: "done"}
			}})
			dir.Store(b.dir)
			b.journal.WaitForLock(50 * time.Millisecond)
			first := b.call(t, "call_1", `{}`)
			if first.Return == nil || first.Return.Result != "done" {
				t.Fatalf("got %+v", first)
			}
			again := b.call(t, "call_1", `{}`)
			if again.Return == nil || !again.Return.Replayed || again.Return.ID != first.Return.ID || again.Return.Result != "done" {
				t.Errorf("got %+v, %v, want a replay of %+v", again.Return, again.Err, first.Return)
			}
			if n := b.tool.ran.Load(); n != 1 {
				t.Errorf("the tool ran %d times", n)
			}
		})
	}
}

// TestACallThatRanInTheLastDaemonIsFound, although this one can write nothing.
func TestACallThatRanInTheLastDaemonIsFound(t *testing.T) {
	t.Parallel()
	old := newBench(t, policy.Allow, &probe{})
	first := old.call(t, "call_1", `{}`)
	old.stop(t)
	must.Do(t, old.journal.Close())
	j := must.Get(journal.Open(t.Context(), old.dir, journal.Self()))(t)
	t.Cleanup(func() { j.Close() })
	b := newBenchOn(t, j, policy.Allow, &probe{})
	must.Do(t, os.Rename(filepath.Join(old.dir, "journal", "00000001.log"), filepath.Join(old.dir, "away")))
	if again := b.call(t, "call_1", `{}`); again.Return == nil || again.Return.ID != first.Return.ID {
		t.Errorf("got %+v, want a replay of %+v", again.Return, first.Return)
	}
}

// TestARepeatWhoseReturnIsLostSaysSo: neither runs it again nor makes up a return.
func TestARepeatWhoseReturnIsLostSaysSo(t *testing.T) {
	t.Parallel()
	l := newLives(t)
	b := l.next(t, policy.Allow, nil)
	b.tool.run = func(context.Context, tools.IO) tools.Result {
		return tools.Result{Text: "done", Diff: strings.Repeat("+ a line\n", 10000)}
	}
	if first := b.call(t, "call_1", `{}`); first.Return == nil || first.Return.Status != "success" {
		t.Fatalf("got %+v", first)
	}
	halt(t, b)
	blobs, err := filepath.Glob(filepath.Join(l.dir, "journal", "blobs", "*", "*"))
	if err != nil || len(blobs) != 1 {
		t.Fatalf("%q, %v", blobs, err)
	}
	must.Do(t, os.Remove(blobs[0]))

	b = l.next(t, policy.Allow, nil)
	again := b.call(t, "call_1", `{}`)
	if e := again.Err; again.Return != nil || e == nil || e.Type != message.InternalError || e.CallID != "call_1" || !strings.Contains(e.Message, "removed or changed") {
		t.Errorf("got %+v, %+v", again.Return, e)
	}
	if n := l.ran(); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
	rec := must.Get(b.journal.FindAny(t.Context(), "call_1"))(t)
	if s := b.newEndedCall(rec).Status(); s.End != "no return that can be read" {
		t.Errorf("it is listed as %+v", s)
	}
	page, err := b.journal.List(t.Context(), journal.Query{CallID: "call_1", MessageTypes: []string{"tool_return_message"}})
	if err != nil || len(page.Messages) != 1 || !errors.Is(page.Messages[0].Lost, journal.ErrTampered) {
		t.Fatalf("listed %+v, %v", page.Messages, err)
	}
	for _, has := range []string{page.Messages[0].ID, `"call_1"`, `"lost"`, `"tool_return_message"`} {
		if !strings.Contains(string(page.Messages[0].Body), has) {
			t.Errorf("%s is not in %s", has, page.Messages[0].Body)
		}
	}
}
