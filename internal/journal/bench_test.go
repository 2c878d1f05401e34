package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkCallCycle is the whole life of a call in the journal, laid beside
// two appends with fsync of the same size in the same run: "x-fsync2" is their
// ratio.
func BenchmarkCallCycle(b *testing.B) {
	j := open(b, b.TempDir())
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	must(b, err)
	defer f.Close()
	line := make([]byte, 600)
	ctx := context.WithoutCancel(b.Context()) // as the daemon has it; one that can end costs a goroutine a statement
	var ours, floor time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		must(b, cycle(ctx, j, call(fmt.Sprint(i))))
		mid := time.Now()
		for range 2 {
			if _, err := f.Write(line); err != nil {
				b.Fatal(err)
			}
			must(b, f.Sync())
		}
		ours, floor = ours+mid.Sub(start), floor+time.Since(mid)
	}
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "us/call")
	b.ReportMetric(float64(ours)/float64(floor), "x-fsync2")
}
