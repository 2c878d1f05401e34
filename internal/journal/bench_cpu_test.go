package journal_test

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
)

// BenchmarkCallCycleProcessor is the processor time of the life of a call in the journal, all
// that is written later included, beside that of the start of bash ("x-F1").
func BenchmarkCallCycleProcessor(b *testing.B) {
	j := open(b, b.TempDir())
	ctx := context.WithoutCancel(b.Context())
	n := 0
	used := func(who int) time.Duration {
		var u syscall.Rusage
		must.Do(b, syscall.Getrusage(who, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	begun := used(syscall.RUSAGE_SELF)
	for b.Loop() {
		n++
		must.Do(b, cycle(ctx, j, call(fmt.Sprint(n))))
	}
	must.Get(j.Calls(ctx, 0, 1))(b)
	ours := used(syscall.RUSAGE_SELF) - begun
	before := used(syscall.RUSAGE_SELF) + used(syscall.RUSAGE_CHILDREN)
	for range 200 {
		must.Do(b, exec.Command("bash", "-c", "true").Run())
	}
	start := (used(syscall.RUSAGE_SELF) + used(syscall.RUSAGE_CHILDREN) - before) / 200
	each := ours / time.Duration(n)
	b.ReportMetric(float64(each.Microseconds()), "us-cpu")
	b.ReportMetric(float64(each)/float64(start), "x-F1-cpu")
}
