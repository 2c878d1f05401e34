package bash

import (
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

// judge returns a function that decides scripts in a test workspace under a policy.
// OUT in a script is a directory outside of the workspace.
func judge(t *testing.T, f policy.File) func(script string) policy.Decision {
	t.Helper()
	ws, out := workspace(t)
	p, err := policy.Compile(policy.Options{Workspace: ws, Home: "/home/u", Tmp: "/tmp"}, f)
	if err != nil {
		t.Fatal(err)
	}
	tool := newTool(ws).(*tool)
	return func(script string) policy.Decision {
		return p.Decide(tool.analyser.analyse(strings.ReplaceAll(script, "OUT", out), ws))
	}
}

// permissive are the defaults of a policy that lists only what it denies.
func permissive() policy.Defaults {
	return policy.Defaults{
		Bash: policy.Allow, Read: policy.Allow, Write: policy.Allow, Net: policy.Allow,
		Unanalysable: policy.Ask, UnknownRead: policy.Ask, UnknownWrite: policy.Ask, UnknownEnv: policy.Allow,
	}
}

func TestARuleFollowsProgramsOfEverySystemDirectory(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]policy.File{
		"presets":    {Defaults: policy.Defaults{Bash: policy.Ask, Read: policy.Ask, Write: policy.Ask, UnknownRead: policy.Ask, UnknownWrite: policy.Ask}, Presets: []string{"shell-readonly", "shell-workspace"}},
		"permissive": {Defaults: permissive()},
	} {
		file.Commands = []policy.Rule{{ID: "push", Action: policy.Deny, Run: []string{"git push **"}}}
		decide := judge(t, file)
		for _, dir := range []string{"", "/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/", "/usr/./sbin/", "//usr/sbin/", "/usr/bin/../sbin/", "./", "/opt/x/"} {
			for _, script := range []string{
				"DIRfind . -exec git push ';'", "DIRfind . -execdir git push {} +", "DIRxargs git push < a.txt", "DIRenv git push", "DIRenv A=b git push", "DIRtimeout 5 git push",
				"DIRnice git push", "DIRbash -c 'git push'", "DIRsh -c 'cd src && git push'", "DIRtimeout 5 DIRfind . -exec DIRgit push ';'", "DIRgit -C src push", "DIRfind . -exec DIRsh -c 'git push' ';'",
			} {
				script = strings.ReplaceAll(script, "DIR", dir)
				if d := decide(script); d.Action != policy.Deny {
					t.Errorf("%s: %s: %v by %s", name, script, d.Action, d.Rule)
				}
			}
		}
	}
}
