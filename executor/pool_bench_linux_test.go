package executor_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/toold/toold/executor"
)

// BenchmarkPool compares calls with a warm shell, with and without a pause between them, with
// those without. x-p50 and x-p99 are multiples of the median of the same command by os/exec.
func BenchmarkPool(b *testing.B) {
	for _, profile := range profiles {
		for _, mode := range terminals {
			for _, kind := range []struct {
				name  string
				size  int
				think time.Duration
			}{
				{"cold", 0, 0},
				{"cold-think", 0, 25 * time.Millisecond},
				{"warm", 2, 0},
				{"warm-think", 2, 25 * time.Millisecond},
			} {
				b.Run(profile.String()+"/"+mode.String()+"/"+kind.name, func(b *testing.B) {
					pool := executor.NewPool(kind.size, nil)
					defer pool.Close()
					c := in(b, mode, "true")
					c.Sandbox.Mode = profile
					comparePool(b, pool, c, kind.think)
				})
			}
		}
	}
}

func comparePool(b *testing.B, pool *executor.Pool, c executor.Command, think time.Duration) {
	var plain, ours []time.Duration
	for b.Loop() {
		<-time.After(think)
		plain = append(plain, measure(b, func() error {
			cmd := exec.Command("bash", "-c", "true")
			cmd.Dir, cmd.Env = c.Dir, c.Env
			_, err := cmd.Output()
			return err
		}))
		<-time.After(think)
		ours = append(ours, measure(b, func() error {
			_, err := pool.Run(b.Context(), c)
			return err
		}))
	}
	floor := float64(median(plain))
	slices.Sort(ours)
	b.ReportMetric(floor/1e3, "floor-µs")
	b.ReportMetric(float64(ours[len(ours)/2])/floor, "x-p50")
	b.ReportMetric(float64(ours[len(ours)*99/100])/floor, "x-p99")
}
