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
)

// everyday are commands as agents give them; what they name is looked up on a real
// file system.
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

// BenchmarkDecide shows what an everyday command costs from its text to the
// decision, its paths resolved, with few and with many rules.
func BenchmarkDecide(b *testing.B) {
	ws, _ := workspace(b)
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

// BenchmarkAnalyse shows what the effects of one everyday command cost.
func BenchmarkAnalyse(b *testing.B) {
	ws, _ := workspace(b)
	a := newAnalyser(ws)
	for _, script := range everyday {
		b.Run(script, func(b *testing.B) {
			for b.Loop() {
				a.Effects(script, ws)
			}
		})
	}
}

// BenchmarkHostile shows what texts of 64 KiB that are made to cost work cost, from
// the text to the decision, with few and with many rules: processor time, the best
// of three for each. Those that take more than slowShape are tried three times more,
// each time later, since a busy neighbour slows some down for a while; those that
// still do are named. The floor is what the parser alone takes for a list of plain
// commands of that size.
func BenchmarkHostile(b *testing.B) {
	ws, _ := workspace(b)
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

// slowShape is the time of a hostile text that is worth a look.
const slowShape = 15 * time.Millisecond

// bestOfThree returns the least of three processor times, those of collecting the
// garbage of the work included.
func bestOfThree(work func()) time.Duration {
	var best time.Duration
	for i := range 3 {
		runtime.GC() // what was there before is not of this work
		begun := processorTime()
		work()
		if took := processorTime() - begun; i == 0 || took < best {
			best = took
		}
	}
	return best
}

// parseOnly parses a text and does nothing with it.
func parseOnly(b *testing.B, script string) {
	b.Helper()
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), ""); err != nil {
		b.Error(err)
	}
}

// report prints the middle and the slow end of some times.
func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/float64(time.Microsecond), "µs-p50")
	b.ReportMetric(float64(took[len(took)*99/100])/float64(time.Microsecond), "µs-p99")
}
