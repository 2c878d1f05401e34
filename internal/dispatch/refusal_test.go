package dispatch

import (
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

func TestARefusalSaysEverythingOnce(t *testing.T) {
	t.Parallel()
	p := must.Get(policy.Compile(policy.Options{Workspace: "/w"}, policy.File{Name: "p.yaml", Defaults: policy.Defaults{Bash: policy.Ask}, Commands: []policy.Rule{
		{ID: "push", Line: 7, Run: []string{"git push **"}, Reason: "releases are made by people"},
	}}))(t)
	argv := []policy.Word{{Text: "git"}, {Text: "push"}}
	for source, want := range map[string]string{
		"git push":         "denied by rule push (p.yaml:7). It must not run `git push`: releases are made by people. Do not try another spelling: ask the user to do it, or leave it out.",
		"(g=git; $g push)": "denied by rule push (p.yaml:7). It must not run `git push`: releases are made by people. Do not try another spelling: ask the user to do it, or leave it out. The part at fault: (g=git; $g push).",
	} {
		r := deniedByPolicy(p.Decide([]policy.Effect{{Kind: policy.Exec, Argv: argv, Source: source}}))
		if r.text != want {
			t.Errorf("got  %s\nwant %s", r.text, want)
		}
	}
}
