package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProposalsAreTheNarrowestRules(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Commands: []Rule{{ID: "push", Action: Ask, Run: []string{"git push **"}}}})
	for _, c := range []struct {
		effect Effect
		want   File
	}{
		{run("mytool build a"), File{Commands: []Rule{{ID: "allow-mytool-build", Action: Allow, Run: []string{"mytool build a"}}}}},
		{tree(read("/srv/a")), File{Paths: []Rule{{ID: "allow-read-a", Action: Allow, Ops: []Kind{Read}, Paths: []string{"/srv/a/**"}}}}},
		{Effect{Kind: Net, Host: "a.test", Port: 443, Scheme: "https"}, File{Net: []Rule{{ID: "allow-net-a-test", Action: Allow, Hosts: []string{"a.test"}, Ports: []int{443}, Schemes: []string{"https"}}}}},
		{Effect{Kind: Env, Name: "APP_X"}, File{Env: []string{"APP_X"}}},
	} {
		got, ok := p.Propose(c.effect)
		if diff := cmp.Diff(c.want, got); !ok || diff != "" {
			t.Errorf("%v: %v (-want +got):\n%s", c.effect, ok, diff)
		}
	}
}

func TestNothingIsProposedForWhatReachesFurther(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Commands: []Rule{{ID: "push", Action: Ask, Run: []string{"git push **"}}}})
	for _, e := range []Effect{
		run("/usr/bin/python3.12 x.py"), run("bash x.sh"), run("env tool"), run("sudo tool"), run("git"), run("docker ps"), run("npx x"), run("rm x"),
		run("tool *"), run("tool x…"), run("git push"), run("go test -exec x"), run("x…"),
		{Kind: Opaque},
		{Kind: Net},
		{Kind: Env},
		{Kind: Env, Name: "LD_PRELOAD"},
		{Kind: Read, Unknown: true},
		write("/w/.git/config"), write("/w/.envrc"),
	} {
		if got, ok := p.Propose(e); ok {
			t.Errorf("%v: %+v", e, got)
		}
	}
}
