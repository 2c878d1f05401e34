package shell

import (
	"testing"

	"github.com/toold/toold/policy"
)

// TestWhatAPipeNamesIsReadByXargs allows paths that are known only at run time, and
// denies some files: what the left side of a pipe names is known well enough.
func TestWhatAPipeNamesIsReadByXargs(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
	a := newAnalyser(ws)
	open := policy.Defaults{Bash: policy.Allow, Read: policy.Allow, Write: policy.Allow, UnknownRead: policy.Allow, Unanalysable: policy.Ask}
	p, err := policy.Compile(policy.Options{Workspace: ws, Home: "/home/u"}, policy.File{Defaults: open, Paths: []policy.Rule{
		{ID: "secrets", Action: policy.Deny, Paths: []string{"${workspace}/.env", "${workspace}/src/*.pem"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]policy.Action{
		"find . | xargs cat":                       policy.Ask,
		"find . -type f -print0 | xargs -0 cat":    policy.Ask,
		"find . | sort | head -3 | xargs -n1 cat":  policy.Ask,
		"find . | (sort | xargs cat)":              policy.Ask,
		"find . | xargs -I% cat %":                 policy.Ask,
		"find . | xargs env nice cat":              policy.Ask,
		"cd src; find .. -newer x | xargs cat":     policy.Ask,
		"ls -a | xargs cat":                        policy.Ask,
		"rg -l x | xargs cat":                      policy.Ask,
		"f() { find .; }; f | xargs cat":           policy.Ask,
		"find . -name '*.pem' | xargs cat":         policy.Ask,
		"find . -name '*.go' | xargs wc -l":        policy.Allow,
		"find src/deep | xargs cat":                policy.Allow,
		"find . | xargs echo":                      policy.Allow,
		"find . | wc -l; echo a.txt | xargs cat":   policy.Allow,
		"find . | wc -l | xargs cat":               policy.Ask, // the pipe is not followed so closely
		"(find . | wc -l); echo a.txt | xargs cat": policy.Allow,
	} {
		if d := p.Decide(a.Effects(script, ws)); d.Action != want {
			t.Errorf("%s: %v by %s (%v), want %v", script, d.Action, d.Rule, d.Effect, want)
		}
	}
}
