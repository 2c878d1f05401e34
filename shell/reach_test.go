package shell

import (
	"os"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// Each of these scripts does in bash what the rule denies, in whatever sandbox.
func TestWhatIsDeniedIsReached(t *testing.T) {
	t.Parallel()
	f := open()
	f.Name, f.Defaults.Confined = "p.yaml", policy.Allow
	f.Commands = []policy.Rule{{ID: "push", Action: policy.Deny, Run: []string{"git push **", "shred ** /etc/passwd"}}}
	ws, _ := must.Workspace(t)
	p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: "/home/u", Tmp: "/tmp"}, f))(t)
	bounded := p.Within(policy.Confinement{View: true, Judged: true, Offline: true, Masked: true})
	a := newAnalyser(ws)
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/reached.txt"))(t))) {
		line = strings.TrimSuffix(line, "\n")
		script, excused := strings.CutPrefix(line, "! ")
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		effects := a.Effects(strings.ReplaceAll(script, "⏎", "\n"), ws)
		for name, p := range map[string]*policy.Policy{"bounded": bounded, "otherwise": p} {
			if d := p.Decide(effects); (d.Action == policy.Deny) == excused {
				t.Errorf("%s: %v by %s: %s", name, d.Action, d.Rule, line)
			}
		}
	}
}
