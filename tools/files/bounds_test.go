package files

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/tools"
)

// cancelled says from some question on that it is cancelled.
type cancelled struct {
	context.Context
	left *atomic.Int64
}

func (c cancelled) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A call that was cancelled while it was computed, in any of its parts, changes nothing.
func TestACancelledChangeIsNotMade(t *testing.T) {
	t.Parallel()
	const parts = 50
	var before, hunks strings.Builder
	var edits []args
	for i := range parts {
		fmt.Fprintf(&before, "line %d.\n", i)
		fmt.Fprintf(&hunks, "@@\n-line %d.\n+LINE %d.\n", i, i)
		edits = append(edits, args{"old_string": fmt.Sprintf("line %d.", i), "new_string": fmt.Sprintf("LINE %d.", i)})
	}
	w := newWorkspace(t)
	after := strings.ToUpper(before.String())
	for tool, a := range map[string]args{
		"apply_patch": patchOf("*** Update File: f\n" + strings.TrimSuffix(hunks.String(), "\n")),
		"multi_edit":  {"file_path": "f", "edits": edits},
		"edit_file":   {"file_path": "f", "edits": edits},
		"write_file":  {"file_path": "f", "content": after},
	} {
		run := func(asks int64) (tools.Result, int64) {
			w.put("f", before.String())
			left := new(atomic.Int64)
			left.Store(asks)
			got := w.must(tool, a).Execute(cancelled{t.Context(), left}, tools.IO{})
			return got, asks - left.Load()
		}
		got, all := run(1 << 30)
		if got.IsError || w.content("f") != after {
			t.Fatalf("%s: %s", tool, got.Text)
		}
		if want := int64(parts + 2); all < want && tool != "write_file" || all < 2 {
			t.Errorf("%s asks %d times whether it is cancelled; want at the start, for each of %d parts, and at the end", tool, all, parts)
		}
		for _, asks := range []int64{0, all / 2, all - 1} {
			if got, _ := run(asks); got.Failure != tools.Cancelled || w.content("f") != before.String() {
				t.Errorf("%s, cancelled after %d of %d: %q", tool, asks, all, got.Failure)
			}
		}
	}
}

func TestTheHunksOfAPatchAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	hunks := func(f, g int) args {
		return patchOf("*** Update File: f"+strings.Repeat("\n@@\n-x\n+y", f), "*** Update File: g"+strings.Repeat("\n@@\n-x\n+y", g))
	}
	if _, err := w.build("apply_patch", hunks(500, 500)); err != nil {
		t.Error(err)
	}
	if _, err := w.build("apply_patch", hunks(500, 501)); err == nil || !strings.Contains(err.Error(), "more than 1000 hunks") {
		t.Error(err)
	}
}

func TestAPatchOfManyLinesTakesLittleMemory(t *testing.T) {
	const size = 4 << 20
	w := newWorkspace(t) // not parallel: it counts what is allocated
	for _, line := range []string{"\n", "\r\n", "0123456789abcdef\n"} {
		w.put("f", strings.Repeat(line, size/len(line)))
		before := allocated()
		got := w.run("apply_patch", patchOf("*** Update File: f\n@@\n+x\n*** End of File"))
		if grown := allocated() - before; got.IsError || grown > 16*size {
			t.Errorf("%q: %d MiB were allocated for %d MiB: %s", line, grown>>20, size>>20, got.Text)
		}
	}
}

func TestTheFilesOfAChangeAreBoundedTogether(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, func(o *Options) { o.MaxWrite = 1000 })
	var sections []string
	for _, name := range []string{"a", "b", "c"} {
		w.put(name, strings.Repeat("line\n", 200))
		sections = append(sections, "*** Update File: "+name+"\n@@\n-line\n*** End of File")
	}
	before := w.tree()
	w.refused("apply_patch", patchOf(sections...), "more than 4000 bytes together", "fewer")
	if got := w.tree(); len(got) != 3 || got["a"] != before["a"] {
		t.Error("something changed")
	}
	if got := w.run("apply_patch", patchOf(sections[:2]...)); got.IsError {
		t.Error(got.Text)
	}
}

// held waits in an ask for on, from the second on, which comes after the first file was read.
type held struct {
	context.Context
	asks    *atomic.Int64
	reached chan<- struct{}
	on      <-chan struct{}
}

func (h held) Err() error {
	if h.Context.Err() == nil && h.asks.Add(1) == 2 {
		close(h.reached)
		<-h.on
	}
	return h.Context.Err()
}

// However many large files are changed at a time, few are in memory. Small ones do not wait for them.
func TestLargeChangesWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	on := make(chan struct{})
	start := func(name string, ctx context.Context) (reached chan struct{}, done chan tools.Result) {
		reached, done = make(chan struct{}), make(chan tools.Result, 1)
		w.put(name, strings.Repeat("line\n", 100_000))
		inv := w.must("apply_patch", patchOf("*** Update File: "+name+"\n@@\n-line\n*** End of File"))
		go func() { done <- inv.Execute(held{ctx, new(atomic.Int64), reached, on}, tools.IO{}) }()
		return reached, done
	}
	first, firstDone := start("first", t.Context())
	second, secondDone := start("second", t.Context())
	<-first
	<-second
	ctx, cancel := context.WithCancel(t.Context())
	third, thirdDone := start("third", ctx)
	w.put("small", "0\n")
	for i := range 20 {
		w.run("edit_file", args{"file_path": "small", "old_string": fmt.Sprint(i), "new_string": fmt.Sprint(i + 1)})
	}
	select {
	case <-third:
		t.Error("the third large change did not wait")
	default:
	}
	cancel()
	if got := <-thirdDone; got.Failure != tools.Cancelled || len(w.content("third")) != 500_000 || w.content("small") != "20\n" {
		t.Errorf("%q %q", got.Failure, got.Text)
	}
	close(on)
	for _, done := range []chan tools.Result{firstDone, secondDone} {
		if got := <-done; got.IsError {
			t.Error(got.Text)
		}
	}
	if got := w.run("apply_patch", patchOf("*** Update File: third\n@@\n-line\n*** End of File")); got.IsError {
		t.Error(got.Text)
	}
}
