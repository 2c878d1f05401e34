package dispatch

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// A target may be what a program has printed: its return must not move a terminal's
// cursor, hold a secret, or have no end.
func TestDenialsAreToldJournalledAndCounted(t *testing.T) {
	t.Parallel()
	denied := []sandbox.Denial{
		{Kind: sandbox.DeniedFile, Op: "write", Target: "/etc/\x1b[2Js3cret\n2", Setting: "sandbox.write", Hint: "no"},
		{Kind: sandbox.DeniedSocket, Op: "connect to", Target: strings.Repeat("é", 3000), Exact: true, Setting: "sandbox.unix_sockets", Hint: "no"},
	}
	b := newBench(t, policy.Allow, &probe{run: func(context.Context, tools.IO) tools.Result {
		return tools.Result{Text: "told", Exit: &tools.Exit{Code: 1}, IsError: true, Denials: denied}
	}})
	got := b.call(t, "call_1", `{}`).Return.Denials
	if len(got) != 2 || len(got[1].Target) > maxDenialText+len("…") || !strings.HasSuffix(got[1].Target, "é…") {
		t.Fatalf("got %+v", got)
	}
	want := message.Denial{Kind: "file", Op: "write", Target: `/etc/\u{001b}[2J[redacted]\n2`, Setting: "sandbox.write", Hint: "no"}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if again := b.call(t, "call_1", `{}`).Return; !cmp.Equal(again.Denials, got) {
		t.Errorf("the record has %+v", again.Denials)
	}
	list, err := b.List(t.Context(), "", "", true)
	if err != nil || len(list) != 1 || list[0].Denials != 2 {
		t.Errorf("the list tells %+v, %v", list, err)
	}
	b.stop(t) // a call is logged after it is answered
	for _, line := range b.logged.FilterMessage("call returned").All()[:1] {
		if n := line.ContextMap()["denials"]; n != int64(2) {
			t.Errorf("the log counts %v", n)
		}
	}
}
