package executor_test

import (
	"io"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

// BenchmarkRunTrue compares a call with the same command by os/exec on a pipe: "ratio" is the
// quotient of the medians.
func BenchmarkRunTrue(b *testing.B) {
	for _, profile := range profiles {
		for _, mode := range terminals {
			b.Run(profile.String()+"/"+mode.String(), func(b *testing.B) {
				c := in(b, mode, "true")
				c.Sandbox.Mode = profile
				var plain, ours []time.Duration
				for b.Loop() {
					plain = append(plain, measure(b, func() error {
						cmd := exec.Command("bash", "-c", "true")
						cmd.Dir, cmd.Env = c.Dir, c.Env
						_, err := cmd.Output()
						return err
					}))
					ours = append(ours, measure(b, func() error {
						_, err := executor.Run(b.Context(), c)
						return err
					}))
				}
				b.ReportMetric(float64(median(ours))/float64(median(plain)), "ratio")
			})
		}
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func measure(b *testing.B, f func() error) time.Duration {
	b.Helper()
	begin := time.Now()
	must.Do(b, f())
	return time.Since(begin)
}

func BenchmarkOutput(b *testing.B) {
	const size = 64 << 20
	for _, mode := range terminals {
		b.Run(mode.String(), func(b *testing.B) {
			c := in(b, mode, "head -c 67108864 /dev/zero")
			c.Sandbox = sandbox.Profile{Mode: sandbox.FullAccess}
			c.Stdout = io.Discard
			b.SetBytes(size)
			for b.Loop() {
				must.Get(executor.Run(b.Context(), c))(b)
			}
		})
	}
}
