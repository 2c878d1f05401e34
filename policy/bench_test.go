package policy

import (
	"fmt"
	"testing"
)

// BenchmarkDecide shows what a decision costs with few and with many rules.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		f := File{Defaults: asking(), Presets: []string{presetReadOnly}}
		for i := range n {
			f.Commands = append(f.Commands, Rule{ID: fmt.Sprint("r", i), Action: Action(i % 3), Run: []string{fmt.Sprintf("tool%d sub **", i)}})
		}
		f.Paths = []Rule{{ID: "ws", Action: Allow, Paths: []string{"/w/**"}}}
		p := compile(b, f)
		effects := []Effect{run("git log --oneline -5"), run("grep -rn x src"), tree(read("/w/src")), read("/w/a/b/c/d.go")}
		b.Run(fmt.Sprint(n, " rules"), func(b *testing.B) {
			for b.Loop() {
				p.Decide(effects)
			}
		})
	}
}
