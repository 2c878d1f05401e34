package policy

import (
	"fmt"
	"testing"
)

// BenchmarkDecide shows what decisions cost with few and with many rules. What is
// asked or denied comes with the change that would alter it.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		f := File{Defaults: asking(), Presets: []string{presetReadOnly}}
		for i := range n {
			f.Commands = append(f.Commands, Rule{ID: fmt.Sprint("r", i), Action: Action(i % 3), Run: []string{fmt.Sprintf("tool%d sub **", i)}})
		}
		f.Paths = []Rule{{ID: "ws", Action: Allow, Paths: []string{"/w/**"}}}
		p := compile(b, f)
		for _, c := range []struct {
			name    string
			effects []Effect
		}{
			{"allowed", []Effect{run("git log --oneline -5"), run("grep -rn x src"), tree(read("/w/src")), read("/w/a/b/c/d.go")}},
			{"asked", []Effect{run("grep -rn x src"), tree(read("/w/src")), run("npm run build --workspace=app")}},
			{"denied", []Effect{run("tool0 sub x"), read("/w/a")}},
			{"built-in", []Effect{run("cp a .git/config"), write("/w/.git/config")}},
		} {
			b.Run(fmt.Sprint(c.name, "/", n, " rules"), func(b *testing.B) {
				for b.Loop() {
					p.Decide(c.effects)
				}
			})
		}
	}
}
