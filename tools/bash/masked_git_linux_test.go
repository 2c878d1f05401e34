package bash_test

import (
	"strings"
	"testing"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// Calls write the repository, so nothing that they put there takes a mask away, and nothing
// there shows them what the bytes of a masked file are.
func TestWhatCallsPutIntoARepositoryLiftsNoMask(t *testing.T) {
	t.Parallel()
	v := newVault(t, "git init -q -b main; echo .env >.gitignore; echo a >a; git add .; git commit -qm one; echo SECRET >.env; git hash-object .env >name; mkdir sub; echo SECRET >sub/.env")
	secret := func(after string) {
		t.Helper()
		for _, script := range []string{"cat .env", "cat sub/.env"} {
			if out := v.fails(script); strings.Contains(out, "SECRET") {
				t.Errorf("after %s: %s", after, out)
			}
		}
	}
	for _, script := range []string{
		"n=$(cat name); mkdir -p .git/objects/${n:0:2}; : >.git/objects/${n:0:2}/${n:2}",
		"n=$(cat name); rm -f .git/objects/${n:0:2}/${n:2}; echo SECRET | git hash-object -w --stdin",
		"git update-index --add --cacheinfo 100644,$(cat name),.env --cacheinfo 100644,$(cat name),sub/.env; git commit -qm two",
		"cd sub; git init -q; git update-index --add --cacheinfo 100644,$(cat ../name),.env",
	} {
		v.succeeds(script)
		secret(script)
		v.person("echo b >>a; git add a; git -C sub status --porcelain") // which writes the index again
		secret("a person's change after " + script)
	}
	v.person("git rm -q --cached .env")
	v.succeeds("true")
	v.person("git add -f .env; git update-index --index-version 4")
	v.succeeds("cat .env")
}

// A person who takes a secret out of git gets its mask back.
func TestWhatGitNoLongerHasIsMaskedAgain(t *testing.T) {
	t.Parallel()
	v := newVault(t, "git init -q -b main; echo SECRET >.env; echo a >a; git add -f .; git commit -qm one")
	for _, script := range []string{"git rm -q --cached .env", "rm -rf .git; git init -q -b main; echo .env >.gitignore; git add ."} {
		v.succeeds("cat .env")
		v.person(script)
		v.succeeds("true")
		if out := v.fails("cat .env"); strings.Contains(out, "SECRET") {
			t.Errorf("after %s: %s", script, out)
		}
		v.person("git add -f .env")
		v.succeeds("true")
	}
	v.succeeds("git rm -q --cached .env; git status --porcelain")
	v.fails("cat .env")
	v.succeeds("echo junk >.git/index")
	if out := v.fails("cat .env"); strings.Contains(out, "SECRET") {
		t.Errorf("with an index that cannot be read: %s", out)
	}
}

// A rule about writing holds for what git tracks, too.
func TestWhatGitTracksIsReadOnlyWhereARuleSaysSo(t *testing.T) {
	t.Parallel()
	v := newVault(t, "git init -q -b main; echo a >a; echo ours >AGENTS.md; git add .; git commit -qm one")
	v.policy = compile(t, v.ws, []policy.Rule{{ID: "agents", Action: policy.Ask, Paths: []string{"**/AGENTS.md"}, Ops: []policy.Kind{policy.Write}}})
	v.fails(`python3 -c 'open("AGENTS.md", "a").write("theirs")'`)
	if out := v.succeeds("cat AGENTS.md; echo b >>a; git commit -qam two; git status --porcelain"); out != "ours\n" {
		t.Errorf("beside it: %q", out)
	}
}

// A masked file is not looked for in the repository when a call would remove it: calls could
// see which objects are looked for.
func TestAMaskedFileIsNotLookedForInARepository(t *testing.T) {
	t.Parallel()
	v := newVault(t, "git init -q -b main; mkdir sub other; echo SECRET >sub/.env; echo open >other/a; git hash-object -w sub/.env other/a")
	for script, want := range map[string]bool{"rm -rf sub": false, "rm -rf other": true} {
		for _, e := range v.build(script).Effects() {
			if e.Kind == policy.Exec && e.Kept != want {
				t.Errorf("%s: kept is %v", script, e.Kept)
			}
		}
	}
}

// What other programs obey no program of a call changes or makes, tracked or not.
func TestNoProgramWritesWhatOthersObey(t *testing.T) {
	t.Parallel()
	v := newVaultOf(t, "git init -q -b main; mkdir -p src .github; for f in CLAUDE.md .github/copilot-instructions.md; do echo >$f; done; git add .; git commit -qm one", policy.Autorun())
	for _, name := range []string{
		"CLAUDE.md", ".github/copilot-instructions.md", "src/CLAUDE.md", "src/AGENTS.md", "src/.github/copilot-instructions.md",
		".devcontainer.json", ".gemini/settings.json", ".config/mise/config.toml", ".cursorrules",
	} {
		r, out := v.call(`python3 -c 'import os; p = "` + name + `"; os.makedirs(os.path.dirname(p) or ".", exist_ok=True); open(p, "a").write("theirs"); open("went-on", "w")'; sleep 0.2`)
		if r.Failure == "" && !strings.Contains(out, "Read-only file system") {
			t.Errorf("%s: %+v %s", name, r, out)
		}
		v.person("! grep -rqs theirs " + name)
	}
}

// What git prints, and its exit code, do not always say that it could not write its configuration.
func TestAReturnSaysOnceThatAProtectedFileIsAsItWas(t *testing.T) {
	t.Parallel()
	v := newVault(t, "git init -q -b main; rm -rf .git/hooks; echo old >.envrc; mkdir sub; echo a >sub/a; git add .; git commit -qm one; git remote add origin .; git fetch -q; sha256sum .git/config .envrc >../sums")
	for script, want := range map[string]string{
		"git config user.name z":                                    ".git/config: rule builtin:git-config denies it (git runs programs that are named there); git's configuration is as it was, whatever git printed: set it for one command with git -c NAME=VALUE, or ask the user to run the command",
		"git remote add x https://e.example/y 2>&1 | tail -3; true": "with git -c NAME=VALUE",
		"git switch -qc new origin/main":                            "with git -c NAME=VALUE",
		"git config user.name z || echo went on":                    "with git -c NAME=VALUE",
		"echo x >.envrc; true":                                      ".envrc: rule builtin:run-later asks first (other programs run or obey what is in it); use write_file, which asks the user, or ask the user to do it",
		"mkdir .git/hooks; echo x >.git/hooks/pre-commit":           "do without it, or ask the user to do it",
	} {
		r, out := v.call(script)
		if len(r.Denials) != 1 || r.Denials[0].Kind != sandbox.DeniedProtected || strings.Count(r.Text, want) != 1 {
			t.Errorf("%s: %+v\n%s\n%s", script, r.Denials, r.Text, out)
		}
		asks := strings.Contains(r.Text, "write_file")
		if asks != strings.Contains(script, ".envrc") {
			t.Errorf("%s: write_file is offered: %v: %s", script, asks, r.Text)
		}
	}
	for _, script := range []string{"git status", "git -c user.name=z commit -q --allow-empty -m two", "echo 'x.txt: Read-only file system'", "cat .git/config", "mkdir /usr/x; true"} {
		if r, out := v.call(script); len(r.Denials) > 0 {
			t.Errorf("%s: %s\n%s", script, r.Text, out)
		}
	}
	v.person("sha256sum --quiet -c ../sums")
}

// A script may work in another directory than its call, where it prints the same relative path.
func TestADenialNamesTheRepositoryInWhichTheCommandRan(t *testing.T) {
	t.Parallel()
	v := newVault(t, "git init -q -b main; git init -q -b main vendor/r; rm -rf .git/hooks vendor/r/.git/hooks; touch a; git add a; git commit -qm one")
	const own, other = ".git/config", "vendor/r/.git/config"
	for script, want := range map[string]string{
		"git config user.name z":                                         own,
		"git -C vendor/r config user.name z":                             other,
		"cd vendor/r && git config user.name z":                          other,
		"(cd vendor && git -C r remote add x https://e.example/y); true": other,
		"cd vendor/r; git -C ../.. config user.name z":                   own,
	} {
		r, out := v.call(script)
		if len(r.Denials) != 1 || strings.TrimPrefix(r.Denials[0].Target, v.ws+"/") != want {
			t.Errorf("%s: %+v, want one of %s\n%s\n%s", script, r.Denials, want, r.Text, out)
		}
	}
}

// A limit that a client sets for its own call takes nothing away from what a rule says.
func TestARuleIsNamedUnderALimitOfTheClient(t *testing.T) {
	t.Parallel()
	v := newVault(t, "echo SECRET >.env; echo x >theirs")
	limit := sandbox.Limit{ReadOnly: []string{v.ws + "/theirs"}}
	for script, want := range map[string]string{"cat .env": "dotenv", "echo x >theirs": "the agent's own sandbox"} {
		r, out := run(t, v.build(script), tools.IO{Policy: v.policy, Limit: limit})
		if len(r.Denials) != 1 || r.Denials[0].Setting != want {
			t.Errorf("%s: %+v\n%s", script, r.Denials, out)
		}
	}
}

// What builds and CI obey git and other tools change, as between branches.
func TestToolsWriteWhatBuildsObey(t *testing.T) {
	t.Parallel()
	v := newVaultOf(t, "git init -q -b main; mkdir -p .github/workflows; echo 1 >.github/workflows/ci.yml; git add .; git commit -qm one; "+
		"git switch -qc other; echo 2 >.github/workflows/ci.yml; echo '*.bin binary' >.gitattributes; git add .; git commit -qm two; git switch -q main", policy.Autorun())
	if r, out := v.call("git switch -q other"); r.Failure != "" || r.Exit == nil || r.Exit.Code != 0 {
		t.Errorf("%+v %s", r, out)
	}
	v.person("grep -q 2 .github/workflows/ci.yml; test -f .gitattributes")
}
