package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

// BenchmarkQueries prints how long listings take in a journal of many calls, how fast its
// index is made anew, and how long one that is current takes to open. TOOLD_CALLS says how many
// (default 20 000), TOOLD_JOURNAL where to keep it for the next run.
func BenchmarkQueries(b *testing.B) {
	calls, dir := 20_000, os.Getenv("TOOLD_JOURNAL")
	_, _ = fmt.Sscan(os.Getenv("TOOLD_CALLS"), &calls)
	if dir == "" {
		dir = b.TempDir()
	}
	if _, err := os.Stat(filepath.Join(dir, "journal")); err != nil {
		fillJournal(b, dir, calls)
	}
	timed := func(name string, times int, do func()) {
		var all []time.Duration
		for range times {
			begun := time.Now()
			do()
			all = append(all, time.Since(begun))
		}
		fmt.Printf("%-40s %8.2f ms\n", name, float64(median(all).Microseconds())/1000)
	}
	reopen := func() *journal.Journal {
		j := must.Get(journal.Open(b.Context(), dir, journal.Self()))(b)
		return j
	}
	must.Do(b, reopen().Close())
	timed("open with a current index", 5, func() { must.Do(b, reopen().Close()) })
	if os.Getenv("TOOLD_REBUILD") != "" {
		must.Do(b, os.RemoveAll(filepath.Join(dir, "journal", "index")))
		begun := time.Now()
		j := reopen()
		took := time.Since(begun)
		link := must.Get(j.Checkpoint())(b)
		fmt.Printf("rebuild: %d records in %v, %.0f a second\n", link.Number, took, float64(link.Number)/took.Seconds())
		must.Do(b, j.Close())
	}
	j := reopen()
	defer j.Close()
	ctx := context.WithoutCancel(b.Context())
	for _, name := range queryNames {
		q := queries(calls)[name]
		timed(name, 5, func() { must.Get(j.List(ctx, q))(b) })
	}
	for name, q := range map[string]journal.CallQuery{
		"log": {}, "log --agent": {Agent: "agent-3"}, "log --agent nosuch": {Agent: "none"}, "log --workspace": {Workspace: "/work/1"}, "log --workspace nosuch": {Workspace: "none"}, "log --decision deny": {Action: "deny"}, "log --decision asked": {Asked: true},
		"log --tool nosuch": {Tool: "none"}, "log --grep frequent": {Text: "package-3"}, "log --grep rare": {Text: "no such text"}, "log --since 1h": {Since: time.Now().Add(-time.Hour)},
	} {
		timed(name, 3, func() { must.Get(j.Select(ctx, q))(b) })
	}
	timed("Latest 100", 5, func() { must.Get(j.Latest(ctx, 0, 100))(b) })
	timed("Latest 100 in the middle", 5, func() { must.Get(j.Latest(ctx, journal.Key(calls/2), 100))(b) })
	timed("Calls 500", 5, func() { must.Get(j.Calls(ctx, journal.Key(calls/2), 500))(b) })
	timed("Ended 20 of a client", 5, func() { must.Get(j.Ended(ctx, "client", "", 20))(b) })
	timed("Ended 20 of a client without calls", 5, func() { must.Get(j.Ended(ctx, "none", "", 20))(b) })
	timed("Ran 20 of a conversation", 5, func() { must.Get(j.Ran(ctx, "client", "agent-3", "conversation-33", 20))(b) })
	timed("Ran 20 of none", 5, func() { must.Get(j.Ran(ctx, "client", "agent-3", "conversation-none", 20))(b) })
	timed("Undelivered", 5, func() { must.Get(j.Undelivered(ctx, "client", 20))(b) })
	timed("OpenCalls", 5, func() { must.Get(j.OpenCalls())(b) })
	timed("FindAny", 5, func() { must.Get(j.FindAny(ctx, fmt.Sprint("call_", calls/2)))(b) })
	b.ReportMetric(0, "ns/op")
}

var queryNames = []string{
	"latest", "oldest", "client", "client without messages", "agent", "conversation", "run", "step", "otid", "group", "sender", "call", "workspace", "other workspace", "status", "other status", "type", "other type",
	"agent and status", "conversation and type", "agent and other status",
}

func queries(calls int) map[string]journal.Query {
	return map[string]journal.Query{
		"latest": {}, "oldest": {Ascending: true}, "client": {Client: "client"}, "client without messages": {Client: "none"}, "agent": {AgentID: "agent-3"}, "conversation": {ConversationID: "conversation-33"},
		"run": {RunID: "run-77"}, "step": {StepID: "step-77"}, "otid": {OTID: "otid-77"}, "group": {GroupID: "group-3"}, "sender": {SenderID: "sender-3"}, "call": {CallID: fmt.Sprint("call_", calls/2)},
		"workspace": {Workspace: "/work/1"}, "other workspace": {Workspace: "/work/none"}, "status": {Status: "error"}, "other status": {Status: "none"},
		"type": {MessageTypes: []string{"tool_return_message"}}, "other type": {MessageTypes: []string{"approval_response_message"}},
		"agent and status": {AgentID: "agent-3", Status: "error"}, "conversation and type": {ConversationID: "conversation-33", MessageTypes: []string{"tool_return_message"}}, "agent and other status": {AgentID: "agent-3", Status: "none"},
	}
}

// fillJournal records calls of ten agents.
func fillJournal(b *testing.B, dir string, calls int) {
	b.Helper()
	j := must.Get(journal.Open(b.Context(), dir, journal.Self()))(b)
	j.Bound(16<<30, func(int64) {}) // as a daemon that is not configured has it
	ctx := context.WithoutCancel(b.Context())
	begun := time.Now()
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for n := g; n < calls; n += 64 {
				if err := oneOfMany(ctx, j, n); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.Logf("%d calls recorded in %v", calls, time.Since(begun))
	must.Do(b, j.Close())
}

func oneOfMany(ctx context.Context, j *journal.Journal, n int) error {
	c := journal.Call{
		Client: "client", ID: fmt.Sprint("call_", n), Origin: message.Origin{
			AgentID: fmt.Sprint("agent-", n%10), ConversationID: fmt.Sprint("conversation-", n%1000), RunID: fmt.Sprint("run-", n/5), StepID: fmt.Sprint("step-", n/2),
			OTID: fmt.Sprint("otid-", n), GroupID: fmt.Sprint("group-", n%7), SenderID: fmt.Sprint("sender-", n%11),
		}, Workspace: fmt.Sprint("/work/", n%3), Tool: "bash", Canonical: "bash", ArgsHash: fmt.Sprint(n), MessageType: "approval_request_message",
	}
	c.Arguments = fmt.Appendf(nil, `{"command":"make -C module-%d target-%d && go test ./internal/package-%d"}`, n%97, n%1009, n%13)
	c.Message = fmt.Appendf(nil, `{"tool_call":{"tool_call_id":%q,"name":"bash","arguments":%s}}`, c.ID, c.Arguments)
	d := journal.Decision{Action: "allow", By: "policy", Rule: "presets", Source: "careful.yaml"}
	if n%20 == 0 {
		d.By, d.Person = "person", "alice"
	}
	rec, _, err := j.Begin(ctx, c, d)
	if err != nil {
		return err
	}
	o := journal.Outcome{Status: "success", OTID: fmt.Sprint("return-", n)}
	if n%50 == 0 {
		o.Status, o.ErrorType = "error", "timeout"
	}
	_, err = j.Finish(rec.Key, o, func(seq int64) (string, []byte, error) {
		return fmt.Sprint("message-out-", n), fmt.Appendf(nil, `{"message_type":"tool_return_message","id":"message-out-%d","seq_id":%d,"tool_call_id":%q,"status":%q,"result":"ok package-%d %0200d\n"}`, n, seq, c.ID, o.Status, n%13, n), nil
	})
	return err
}
