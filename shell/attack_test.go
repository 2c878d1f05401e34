package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell"
)

// strict decides scripts in a workspace of its own by the policy of "policy init --strict".
func strict(t *testing.T) func(script string) policy.Decision {
	t.Helper()
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	ws := filepath.Join(base, "ws")
	for name, text := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/objects/x": "", ".git/hooks/x": "", ".env": "KEY=1\n", "a.txt": "a\n", "b.txt": "b\n", "payload": "x\n", "evil": "#!/bin/sh\n", "sub/c.txt": "c\n",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(ws+"/"+name), 0o755))
		must.Do(t, os.WriteFile(ws+"/"+name, []byte(text), 0o644))
	}
	p := strictRules(t, ws)
	a := shell.New(shell.Options{Workspace: ws, Env: map[string]string{"HOME": base + "/home", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}})
	return func(script string) policy.Decision { return p.Decide(a.Effects(script, ws)) }
}

// strictRules is the policy of "policy init --strict".
func strictRules(t testing.TB, workspace string) *policy.Policy {
	t.Helper()
	return starterRules(t, "strict", workspace)
}

// starterRules is a policy that comes with toold.
func starterRules(t testing.TB, name, workspace string) *policy.Policy {
	t.Helper()
	text := must.Get(config.StarterPolicy(name))(t)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	must.Do(t, os.WriteFile(file, text, 0o600))
	p := must.Get(config.LoadPolicy(file, policy.Options{Workspace: workspace, Home: filepath.Dir(workspace) + "/home", Tmp: "/tmp"}))(t)
	return p
}

// Each of these scripts runs ./evil, or reads or writes what that policy
// protects, in real bash.
func TestNoScriptThatRunsAnothersProgramIsAllowed(t *testing.T) {
	t.Parallel()
	decide := strict(t)
	data := must.Get(os.ReadFile("testdata/attacks.txt"))(t)
	n := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		n++
		script := strings.ReplaceAll(line, "⏎", "\n")
		if d := decide(script); d.Action == policy.Allow {
			t.Errorf("allowed by %s: %s", d.Rule, line)
		}
	}
	t.Logf("%d scripts", n)
}
