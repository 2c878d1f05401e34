package journal_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkCallCycle is the whole life of a call in the journal, laid beside
// two appends with fsync of the same size ("x-fsync2") and beside the start of bash
// ("x-F1") in the same run.
func BenchmarkCallCycle(b *testing.B) {
	j := open(b, b.TempDir())
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	must(b, err)
	defer f.Close()
	line := make([]byte, 600)
	ctx := context.WithoutCancel(b.Context()) // as the daemon has it; one that can end costs a goroutine a statement
	var ours, floor, starts time.Duration
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
		end := time.Now()
		if _, err := exec.Command("bash", "-c", "true").Output(); err != nil {
			b.Fatal(err)
		}
		ours, floor, starts = ours+mid.Sub(start), floor+end.Sub(mid), starts+time.Since(end)
	}
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N), "us/call")
	b.ReportMetric(float64(ours)/float64(floor), "x-fsync2")
	b.ReportMetric(float64(ours)/float64(starts), "x-F1")
}
