package bash

import (
	"slices"
	"testing"
	"time"
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
	tool := newTool(ws).(*tool)
	for _, bench := range []struct {
		name  string
		rules int
	}{{"10 rules", 10}, {"10000 rules", 10000}} {
		p := judging(b, ws, bench.rules)
		b.Run(bench.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				begun := time.Now()
				p.Decide(tool.analyser.analyse(everyday[i%len(everyday)], ws))
				took = append(took, time.Since(begun))
			}
			report(b, took)
		})
	}
}

// BenchmarkAnalyse shows what the effects of one everyday command cost.
func BenchmarkAnalyse(b *testing.B) {
	ws, _ := workspace(b)
	tool := newTool(ws).(*tool)
	for _, script := range everyday {
		b.Run(script, func(b *testing.B) {
			for b.Loop() {
				tool.analyser.analyse(script, ws)
			}
		})
	}
}

// BenchmarkHostile shows what texts of 64 KiB that are made to cost work cost: the
// best of three times for each, the slowest of them all and the one in the middle.
func BenchmarkHostile(b *testing.B) {
	ws, _ := workspace(b)
	tool := newTool(ws).(*tool)
	p := judging(b, ws, 10)
	scripts := hostileScripts()
	best := map[string]time.Duration{}
	for b.Loop() {
		for name, script := range scripts {
			for range 3 {
				begun := time.Now()
				p.Decide(tool.analyser.analyse(script, ws))
				if took := time.Since(begun); best[name] == 0 || took < best[name] {
					best[name] = took
				}
			}
		}
	}
	var all []time.Duration
	slowest := ""
	for name, took := range best {
		all = append(all, took)
		if slowest == "" || took > best[slowest] {
			slowest = name
		}
	}
	slices.Sort(all)
	b.Logf("the slowest is %q", slowest)
	b.ReportMetric(float64(all[len(all)/2])/float64(time.Millisecond), "ms-p50")
	b.ReportMetric(float64(all[len(all)-1])/float64(time.Millisecond), "ms-worst")
}

// report prints the middle and the slow end of some times.
func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/float64(time.Microsecond), "µs-p50")
	b.ReportMetric(float64(took[len(took)*99/100])/float64(time.Microsecond), "µs-p99")
}
