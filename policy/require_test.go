package policy

import (
	"testing"
)

// A rule that allows a command with "-n dev" does so in every spelling and place, and with
// no other value.
func TestARuleRequiresFlagsWithTheirValues(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Commands: []Rule{
		{ID: "dev", Action: Allow, Run: []string{"kubectl {get,describe,logs} **", "kubectl delete pod *"}, RequireFlags: []string{"-n dev"}, ForbidFlags: []string{"--watch"}},
		{ID: "trial", Action: Allow, Run: []string{"kubectl apply **"}, RequireFlags: []string{"--dry-run=client", "--namespace=dev*"}},
		{ID: "isolated", Action: Allow, Run: []string{"docker run node:*"}, RequireFlags: []string{"--rm", "--network none"}},
		{ID: "own", Action: Allow, Run: []string{"mytool **"}, RequireFlags: []string{"--env=dev", "-q"}},
	}})
	for command, want := range cases(t, "require.txt") {
		if d := p.Decide([]Effect{run(command)}); d.Action.String() != want {
			t.Errorf("%s: %v by %s, want %s", command, d.Action, d.Rule, want)
		}
	}
	for _, flag := range []string{"-n dev", "-n=dev", "--namespace dev", "-n  dev", " -n dev ", "-n= dev"} {
		p := rules(t, asking(), Rule{ID: "x", Action: Allow, Run: []string{"kubectl get **"}, RequireFlags: []string{flag}})
		decides(t, p, map[string]Action{"kubectl get x -n dev": Allow, "kubectl get x -n prod": Ask, "kubectl get x": Ask})
	}
	for _, flag := range []string{"n dev", "", "-", "--name*=x", "-n {a,b}", "-n a b"} {
		if _, err := Compile(Options{}, File{Commands: []Rule{{ID: "x", Action: Allow, Run: []string{"a"}, RequireFlags: []string{flag}}}}); err == nil {
			t.Errorf("%q is taken for a flag", flag)
		}
	}
}
