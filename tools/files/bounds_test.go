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
