package policy

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// ruled is a file with n rules of each kind that have much in common with a few
// that matter.
func ruled(n int) File {
	f := File{Defaults: asking(), Presets: []string{presetReadOnly}, Env: []string{"APP_*"}}
	for i := range n {
		id, action := fmt.Sprint("r", i), Action(i%3)
		program := []string{"tool%d sub **", "git sub%d --force **", "npm run task%d **", "* verb%d **", "{kubectl,docker} -x sub%d **"}[i%5]
		f.Commands = append(f.Commands, Rule{ID: id, Action: action, Run: []string{fmt.Sprintf(program, i)}})
		path := []string{"/w/d%d/**", "${workspace}/**/name%d", "**/*.end%d", "/w/lib/*/part%d/**", "/srv/x%d"}[i%5]
		f.Paths = append(f.Paths, Rule{ID: id, Action: action, Paths: []string{fmt.Sprintf(path, i)}})
		host := []string{"h%d.test", "*.h%d.test"}[i%2]
		f.Net = append(f.Net, Rule{ID: id, Action: action, Hosts: []string{fmt.Sprintf(host, i)}})
		f.Env = append(f.Env, fmt.Sprint("V", i))
	}
	f.Commands = append(f.Commands,
		Rule{ID: "push", Action: Ask, Run: []string{"git push **"}}, Rule{ID: "rm", Action: Deny, Run: []string{"rm -r **"}},
		Rule{ID: "test", Action: Allow, Run: []string{"go test **"}})
	f.Paths = append(f.Paths, Rule{ID: "ws", Action: Allow, Paths: []string{"${workspace}/**"}}, Rule{ID: "dotenv", Action: Deny, Paths: []string{"**/.env"}})
	f.Net = append(f.Net, Rule{ID: "docs", Action: Allow, Hosts: []string{"*.example.org"}}, Rule{ID: "bad", Action: Deny, Hosts: []string{"bad.test"}})
	return f
}

// benchmarked are effects of each kind with each outcome.
func benchmarked() []struct {
	name   string
	effect Effect
} {
	return []struct {
		name   string
		effect Effect
	}{
		{"command allowed", run("git log --oneline -5")},
		{"command allowed by a rule", run("go test ./...")},
		{"command asked", run("npm run build --workspace=app")},
		{"command asked by a rule", run("git push origin main")},
		{"command denied", run("rm -fr x")},
		{"command unknown", run("frobnicate a b c d")},
		{"path allowed", read("/w/a/b/c/d.go")},
		{"path asked", write("/opt/a/b/c/d.go")},
		{"path denied", read("/w/a/.env")},
		{"path built-in", write("/w/.git/config")},
		{"tree allowed", tree(read("/w/src"))},
		{"host allowed", Effect{Kind: Net, Host: "a.example.org", Scheme: "https", Port: 443}},
		{"host asked", Effect{Kind: Net, Host: "a.other.org", Scheme: "https", Port: 443}},
		{"host denied", Effect{Kind: Net, Host: "bad.test"}},
		{"variable allowed", Effect{Kind: Env, Name: "APP_X"}},
		{"variable asked", Effect{Kind: Env, Name: "OTHER"}},
	}
}

// BenchmarkDecide shows what one effect costs with few rules, and how much more
// it costs with many: the middle of many times. What is asked or denied comes with
// the change that would alter it.
func BenchmarkDecide(b *testing.B) {
	few, many := compile(b, ruled(10)), compile(b, ruled(10_000))
	for _, c := range benchmarked() {
		b.Run(c.name, func(b *testing.B) {
			effects := []Effect{c.effect}
			var with10, with10000 []time.Duration
			for b.Loop() {
				with10 = append(with10, timed(few, effects))
				with10000 = append(with10000, timed(many, effects))
			}
			a, z := middle(with10), middle(with10000)
			b.ReportMetric(float64(a)/1000, "µs-10-rules")
			b.ReportMetric(float64(z)/1000, "µs-10000-rules")
			b.ReportMetric(float64(z)/float64(a), "x-10-rules")
		})
	}
}

// timed is what one of several decisions takes.
func timed(p *Policy, effects []Effect) time.Duration {
	const several = 8
	begun := time.Now()
	for range several {
		p.Decide(effects)
	}
	return time.Since(begun) / several
}

func middle(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}
