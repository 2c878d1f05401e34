package journal_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
)

// BenchmarkCallCycle is the whole life of a call in the journal, laid beside two appends with
// fsync of the same size ("x-fsync2") and beside the start of bash ("x-F1") in the same run:
// medians, one after the other and with pauses between them.
func BenchmarkCallCycle(b *testing.B) {
	for name, pause := range map[string]time.Duration{"in-turn": 0, "after-a-pause": 10 * time.Millisecond} {
		b.Run(name, func(b *testing.B) { benchmarkCycle(b, pause) })
	}
}

func benchmarkCycle(b *testing.B, pause time.Duration) {
	j := open(b, b.TempDir())
	var syncs, syncing atomic.Int64
	j.Measure(func(took time.Duration, _ error) { syncs.Add(1); syncing.Add(int64(took)) })
	f := must.Get(os.Create(filepath.Join(b.TempDir(), "log")))(b)
	defer f.Close()
	line := make([]byte, 600)
	ctx := context.WithoutCancel(b.Context()) // as the daemon has it; one that can end costs a goroutine a statement
	var took [3][]time.Duration
	for n := 0; b.Loop(); n++ {
		for i, do := range []func(){
			func() { must.Do(b, cycle(ctx, j, call(fmt.Sprint(n)))) },
			func() {
				for range 2 {
					must.Get(f.Write(line))(b)
					must.Do(b, f.Sync())
				}
			},
			func() {
				must.Get(exec.Command("bash", "-c", "true").Output())(b)
			},
		} {
			<-time.After(pause) // what is measured
			begun := time.Now()
			do()
			took[i] = append(took[i], time.Since(begun))
		}
	}
	ours := float64(median(took[0]))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours/1000, "us/call")
	b.ReportMetric(float64(syncing.Load()/syncs.Load())/1000, "us/sync")
	b.ReportMetric(ours/float64(median(took[1])), "x-fsync2")
	b.ReportMetric(ours/float64(median(took[2])), "x-F1")
}

// BenchmarkWriters is how many lives of calls a second 64 callers get through.
func BenchmarkWriters(b *testing.B) {
	j := open(b, b.TempDir())
	var syncs, next atomic.Int64
	j.Measure(func(time.Duration, error) { syncs.Add(1) })
	ctx := context.WithoutCancel(b.Context())
	b.ResetTimer()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := cycle(ctx, j, call(fmt.Sprint(n))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	b.ReportMetric(float64(b.N)/float64(syncs.Load()), "cycles/sync")
}
