package executor_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/sandbox/caches"
)

// BenchmarkCaches compares calls with and without tool caches: "ratio" is the quotient of the
// medians.
func BenchmarkCaches(b *testing.B) {
	h := newCacheHome(b)
	set := h.open(b, caches.Cache{Path: h.cache}, caches.Cache{Path: filepath.Join(h.cache, "a")},
		caches.Cache{Path: filepath.Join(h.dir, "none"), Env: "NONE"})
	without := in(b, executor.Off, "true")
	with := without
	with.Sandbox.Caches = set
	b.Run("cold", func(b *testing.B) {
		compare(b, 0, func() error { _, err := executor.Run(b.Context(), without); return err },
			func() error { _, err := executor.Run(b.Context(), with); return err })
	})
	b.Run("warm", func(b *testing.B) {
		plain, ours := executor.NewPool(1, nil), executor.NewPool(1, nil)
		defer plain.Close()
		defer ours.Close()
		plain.Prepare(without)
		ours.Prepare(with)
		compare(b, 50*time.Millisecond, func() error { _, err := plain.Run(b.Context(), without); return err },
			func() error { _, err := ours.Run(b.Context(), with); return err })
	})
}

func compare(b *testing.B, pause time.Duration, plain, ours func() error) {
	var p, o []time.Duration
	for b.Loop() {
		<-time.After(pause)
		p = append(p, measure(b, plain))
		<-time.After(pause)
		o = append(o, measure(b, ours))
	}
	b.ReportMetric(float64(median(o))/float64(median(p)), "ratio")
	b.ReportMetric(float64(median(o).Microseconds()), "us")
}
