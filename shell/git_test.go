package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell"
)

// TestAliasesOfGitAreJudgedAsWhatTheyStandFor uses the configuration of a user and of a repository.
func TestAliasesOfGitAreJudgedAsWhatTheyStandFor(t *testing.T) {
	t.Parallel()
	ws, home := t.TempDir(), t.TempDir()
	env := map[string]string{"HOME": home, "PATH": os.Getenv("PATH")}
	configuration := `[alias]
	p = push
	f = push --force
	twice = p origin
	round = around
	around = round
	stop = "!f() { git push \"$@\"; }; f"
	odd = "log 'a b'"
	lg = log --oneline
	status = push
	clear = !rm -rf out
`
	for path, text := range map[string]string{home + "/.gitconfig": configuration, ws + "/local": "[alias]\n\there = push\n"} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for _, argv := range [][]string{{"git", "init", "-q", ws}, {"git", "-C", ws, "config", "include.path", "../local"}} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: home, Tmp: "/tmp"}, policy.File{
		Defaults: policy.Defaults{Bash: policy.Allow, Read: policy.Allow, Write: policy.Allow, Net: policy.Allow, Unanalysable: policy.Ask, UnknownRead: policy.Allow, UnknownWrite: policy.Allow, UnknownEnv: policy.Allow},
		Commands: []policy.Rule{{ID: "push", Action: policy.Deny, Run: []string{"git push **"}}},
	}))(t)
	a := shell.New(shell.Options{Workspace: ws, Env: env})
	top := func(e policy.Effect) bool { return e.Kind == policy.Write && e.Path == ws+"/out" }
	if effects := a.Effects("mkdir sub && cd sub && git clear", ws); !slices.ContainsFunc(effects, top) {
		t.Errorf("an alias that is a script runs at the top of the repository: %+v", effects)
	}
	for script, want := range map[string]policy.Action{
		"git p":                            policy.Deny,
		"git f":                            policy.Deny,
		"git twice":                        policy.Deny,
		"git here":                         policy.Deny,
		"git stop origin main":             policy.Deny,
		"git -C . p":                       policy.Deny,
		"mkdir -p new; cd new; git p":      policy.Deny,
		"env git p origin":                 policy.Deny,
		"git -c alias.own=push own":        policy.Deny,
		"git -c alias.OWN='!git push' own": policy.Deny,
		"git -c alias.own=p own":           policy.Deny,
		"git odd":                          policy.Ask,
		"git lg -3":                        policy.Allow,
		"git round":                        policy.Allow, // git refuses it
		"git status":                       policy.Allow, // git ignores such an alias
		"git no-such-command":              policy.Allow,
	} {
		if d := p.Decide(a.Effects(script, ws)); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", script, d.Action, d.Rule, want)
		}
	}
}

// What git runs by its settings outlives the call, also where the sandbox bounds that.
func TestASettingThatRunsAProgramIsAskedUnderEveryPolicy(t *testing.T) {
	t.Parallel()
	ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	must.Do(t, os.MkdirAll(ws+"/.git", 0o700))
	a := shell.New(shell.Options{Workspace: ws, Env: map[string]string{"HOME": ws + "/../home", "PATH": "/usr/bin:/bin"}})
	for _, name := range []string{"careful", "strict", "go", "node", "python"} {
		confined := starterRules(t, name, ws).Within(policy.Confinement{View: true, Judged: true, Offline: true, Masked: true})
		for _, script := range []string{
			"git config core.hooksPath .h && echo x > .h/pre-commit", "git config --local core.hookspath .h", "git -C . config set core.hooksPath .h", "git-config core.hooksPath .h", "git config core.fsmonitor ./x", "git config core.sshCommand ./x", "git config --global core.editor ./x",
			"git config core.pager ./x", "git config diff.external ./x", "git config filter.x.smudge ./x", "git config diff.x.textconv ./x", "git config --add alias.x '!./x'", "git config include.path ../x", "git config merge.x.driver ./x", "git config credential.helper ./x", "git config gpg.program ./x",
			"git config pager.log ./x", "git config init.templateDir x", "git config $(cat n) ./y", "git config -f .git/config a.b c", "git config --rename-section user core", "sh -c 'git config core.hooksPath .h'", "env git config core.hooksPath .h", "echo .h | xargs git config core.hooksPath",
			"git lfs install", "git maintenance start", "pre-commit install", "npx husky init", "npx --yes husky@9 init", "lefthook install", "./node_modules/.bin/husky",
		} {
			if d := confined.Decide(a.Effects(script, ws)); d.Action == policy.Allow {
				t.Errorf("%s: %s: allowed by %s", name, script, d.Rule)
			}
		}
		for _, script := range []string{"git config user.name x", "git config user.email \"$x@y\"", "git config --get core.hooksPath", "git config core.autocrlf input", "git config commit.gpgsign false", "git config --unset core.hooksPath", "pre-commit run -a", "git -c core.hooksPath=.h status"} {
			if d := confined.Decide(a.Effects(script, ws)); d.Rule == "builtin:git-settings" {
				t.Errorf("%s: %s: %v by %s", name, script, d.Action, d.Rule)
			}
		}
	}
}

// TestAGitOfTheWorkspaceReadsNoAlias puts a program before git in PATH, as a call may.
func TestAGitOfTheWorkspaceReadsNoAlias(t *testing.T) {
	ws := t.TempDir()
	must.Do(t, os.WriteFile(ws+"/git", []byte("#!/bin/sh\n>"+ws+"/ran\n"), 0o755))
	t.Setenv("PATH", ws+":"+os.Getenv("PATH"))
	a := shell.New(shell.Options{Workspace: ws, Env: map[string]string{"HOME": ws, "PATH": os.Getenv("PATH")}})
	a.Effects("git nothing-known", ws)
	if _, err := os.Stat(ws + "/ran"); err == nil {
		t.Error("the analysis ran a program of the workspace")
	}
}
