package shell

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/must"
)

var everyday = []string{
	"ls -la",
	"grep -rn x src/main.go | sort -u | head -20",
	"cat a.txt b.txt > src/deep/new.txt 2>/dev/null",
	"for f in a b c; do wc -l \"$f.txt\"; done",
	"cd src && git log --oneline -5 -- main.go",
	"go test ./... 2>&1 | tail -40",
	"find . -name '*.go' -not -path './vendor/*' | xargs wc -l",
	"sed -n '1,80p' src/main.go",
	"mkdir -p build && cp a.txt build/ && rm -f build/old.txt",
	"git status --short && git diff --stat",
}

// BenchmarkDecide measures everyday commands from text to decision.
func BenchmarkDecide(b *testing.B) {
	ws, _ := must.Workspace(b)
	a := newAnalyser(ws)
	for _, bench := range []struct {
		name  string
		rules int
	}{{"10 rules", 10}, {"10000 rules", 10000}} {
		p := judging(b, ws, bench.rules)
		b.Run(bench.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				begun := time.Now()
				p.Decide(a.Effects(everyday[i%len(everyday)], ws))
				took = append(took, time.Since(begun))
			}
			report(b, took)
		})
	}
}

func BenchmarkAnalyse(b *testing.B) {
	ws, _ := must.Workspace(b)
	a := newAnalyser(ws)
	for _, script := range everyday {
		b.Run(script, func(b *testing.B) {
			for b.Loop() {
				a.Effects(script, ws)
			}
		})
	}
}

// BenchmarkHostile measures the processor time of hostile texts, the best of three. Slow ones are
// retried three times, since neighbours slow some down. The floor is the parser's time for plain
// commands.
func BenchmarkHostile(b *testing.B) {
	ws, _ := must.Workspace(b)
	a := newAnalyser(ws)
	scripts := hostileScripts(b)
	for _, rules := range []int{10, 1000} {
		p := judging(b, ws, rules)
		b.Run(fmt.Sprint(rules, " rules"), func(b *testing.B) {
			best := map[string]time.Duration{}
			var floor time.Duration
			for b.Loop() {
				floor = bestOfThree(func() { parseOnly(b, scripts["known commands"]) })
				for name, script := range scripts {
					best[name] = bestOfThree(func() { p.Decide(a.Effects(script, ws)) })
				}
				for range 3 {
					for name, took := range best {
						if took > slowShape {
							best[name] = min(took, bestOfThree(func() { p.Decide(a.Effects(scripts[name], ws)) }))
						}
					}
				}
			}
			names := slices.SortedFunc(maps.Keys(best), func(x, y string) int { return int(best[y] - best[x]) })
			for _, name := range names {
				if best[name] > slowShape {
					b.Logf("%q takes %v", name, best[name].Round(100*time.Microsecond))
				}
			}
			slowest, middle := best[names[0]], best[names[len(names)/2]]
			b.Logf("%d shapes; the slowest is %q", len(names), names[0])
			b.ReportMetric(float64(middle)/float64(time.Millisecond), "ms-p50")
			b.ReportMetric(float64(slowest)/float64(time.Millisecond), "ms-worst")
			b.ReportMetric(float64(slowest)/float64(floor), "x-floor")
		})
	}
}

const slowShape = 15 * time.Millisecond

// bestOfThree includes the collection of the work's garbage.
func bestOfThree(work func()) time.Duration {
	var best time.Duration
	for i := range 3 {
		runtime.GC()
		begun := processorTime()
		work()
		if took := processorTime() - begun; i == 0 || took < best {
			best = took
		}
	}
	return best
}

func parseOnly(b *testing.B, script string) {
	b.Helper()
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), ""); err != nil {
		b.Error(err)
	}
}

func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/float64(time.Microsecond), "µs-p50")
	b.ReportMetric(float64(took[len(took)*99/100])/float64(time.Microsecond), "µs-p99")
}
