package journal_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

// BenchmarkLongJournal is the life of a call in a journal with a million messages,
// laid beside that in one with few, in turn.
func BenchmarkLongJournal(b *testing.B) {
	short, long := open(b, b.TempDir()), longJournal(b, 500_000)
	ctx := context.WithoutCancel(b.Context())
	var few, many []time.Duration
	n := 0
	for b.Loop() {
		for range 200 {
			n++
			begun := time.Now()
			must.Do(b, plainCycle(ctx, short, n))
			middle := time.Now()
			must.Do(b, plainCycle(ctx, long, n))
			few, many = append(few, middle.Sub(begun)), append(many, time.Since(middle))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median(many).Microseconds()), "µs-p50")
	b.ReportMetric(float64(median(many))/float64(median(few)), "x-short")
}

// plainCycle is the life of a call as most clients send it.
func plainCycle(ctx context.Context, j *journal.Journal, n int) error {
	c := call(fmt.Sprint("call_", n))
	c.AgentID, c.ConversationID, c.RunID, c.StepID, c.OTID = "", "", "", "", ""
	rec, _, err := j.Begin(ctx, c, allow)
	if err != nil {
		return err
	}
	body := make([]byte, 0, 1200)
	_, err = j.Finish(rec.Key, journal.Outcome{Status: "success", OTID: message.NewID("otid")}, func(seq int64) (string, []byte, error) {
		id := message.NewID("message")
		return id, fmt.Appendf(body, `{"id":%q,"seq_id":%d,"result":"%01000d"}`, id, seq, 0), nil
	})
	return err
}

// longJournal is a journal with some calls.
func longJournal(b *testing.B, calls int) *journal.Journal {
	b.Helper()
	j := open(b, b.TempDir())
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for i := g; i < calls; i += 64 {
				if err := plainCycle(b.Context(), j, -i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	must.Get(j.Calls(b.Context(), 0, 1))(b)
	return j
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
