package shell

import (
	"os"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// careful asks before work is lost, and before the files outside of the workspace.
func careful() policy.File {
	return policy.File{
		Name:     "careful.yaml",
		Defaults: policy.Defaults{Bash: policy.Ask, Read: policy.Ask, Write: policy.Ask, Net: policy.Ask, Unanalysable: policy.Ask, UnknownRead: policy.Allow, UnknownWrite: policy.Ask, UnknownEnv: policy.Ask, Confined: policy.Allow},
		Presets:  []string{"shell-readonly", "shell-workspace"},
		Commands: []policy.Rule{{ID: "destructive", Action: policy.Ask, Classes: []string{"destructive"}}},
		Paths:    []policy.Rule{{ID: "workspace", Action: policy.Allow, Paths: []string{"${workspace}/**"}}},
	}
}

// confined is judge in a sandbox, and in none. The workspace has template/a, brought/.git and a file v1.0.
func confined(t *testing.T, f policy.File) (in, out func(script string) policy.Decision) {
	t.Helper()
	ws, _ := must.Workspace(t)
	for _, dir := range []string{"/template/sub", "/brought/.git"} {
		must.Do(t, os.MkdirAll(ws+dir, 0o755))
	}
	must.Do(t, os.WriteFile(ws+"/v1.0", nil, 0o644))
	p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: "/home/u", Tmp: "/tmp"}, f))(t)
	a := newAnalyser(ws)
	by := func(p *policy.Policy) func(string) policy.Decision {
		return func(script string) policy.Decision { return p.Decide(a.Effects(script, ws)) }
	}
	return by(p.Within(policy.Confinement{View: true, Judged: true, Offline: true, Masked: true})), by(p)
}

// What brings files to the workspace itself is decided as what brings them to the current directory; a rule is kept, and
// what may be a repository is asked about.
func TestTheWorkspaceItselfMayBeADestination(t *testing.T) {
	t.Parallel()
	f := careful()
	f.Commands = nil // mv is asked without a look at the disk
	in, out := confined(t, f)
	for script, want := range map[string]policy.Action{
		"git rm -r --cached .": policy.Allow, "tar xzf x.tgz -C .": policy.Allow, "tar xzf x.tgz": policy.Allow, "git archive HEAD | tar x -C .": policy.Allow, "unzip -o x.zip -d .": policy.Allow, "unzip -o x.zip": policy.Allow,
		"cp -r template/. .": policy.Allow, "cp -a template/* .": policy.Allow, "rsync -a template/ .": policy.Allow, "cp -t . a.txt": policy.Allow, "cp -rt . template": policy.Allow, "mv -t . src/main.go": policy.Allow,
		"install -t . src/main.go": policy.Allow, "ln -st . src/main.go": policy.Allow, "cd src && tar xf ../x.tar -C ..": policy.Allow, "cp -r template/. $PWD": policy.Allow,
		"cp -r brought/. .": policy.Ask, "rsync -a brought/ .": policy.Ask, "rsync -a host:x/ .": policy.Ask, "chmod -R a+r .": policy.Ask, "cp -r \"$(x)\"/. .": policy.Ask, "git init new; cp -r new/. .": policy.Ask,
		"ln -s brought l; cp -r l/. .": policy.Ask, "git clone ./brought .": policy.Ask, "git rm -r --cached --no-cached .": policy.Deny, "git rm -r .": policy.Deny, "rm -rf .": policy.Deny, "mv . ../x": policy.Deny,
		"cp -r brought/.git .": policy.Deny, "cp -t . brought/.git": policy.Deny, "cp x .git/config": policy.Deny, "tar xf x.tar -C .git/hooks": policy.Deny, "unzip x.zip -d .git": policy.Deny, "cp -rT brought .": policy.Ask,
		"cd brought && cp -r --parents .git ..": policy.Deny, "rsync -aR brought/./.git .": policy.Deny, "rsync -a --relative template/ .": policy.Deny,
	} {
		if d := in(script); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", script, d.Action, d.Rule, want)
		}
		if d := out(script); d.Action > want || want != policy.Deny && d.Action == policy.Deny {
			t.Errorf("without a sandbox: %s: %v by %s", script, d.Action, d.Rule)
		}
	}
	decide := judge(t, kept())
	for _, script := range []string{"cp -r src/. .", "rsync -a src/ .", "tar xf x.tar -C .", "unzip x.zip -d .", "chmod -R a+r ."} {
		if d := decide(script); d.Action != policy.Deny || d.Rule != "kept" {
			t.Errorf("%s: %v by %s, want a denial of what is below it", script, d.Action, d.Rule)
		}
	}
}

func TestANameWithADotIsARevisionUnlessItIsAFile(t *testing.T) {
	t.Parallel()
	decide, _ := confined(t, careful())
	for script, want := range map[string]policy.Action{
		"git checkout v2.0.0": policy.Allow, "git checkout release/1.2": policy.Allow, "git checkout feature.x": policy.Allow, "git checkout -b hotfix v2.0.0": policy.Allow, "git checkout -b hotfix v1.0": policy.Allow,
		"git checkout -t origin/release/1.2": policy.Allow, "git checkout --orphan a.b": policy.Allow, "git checkout main": policy.Allow,
		"git checkout v1.0": policy.Ask, "git checkout a.txt": policy.Ask, "git checkout src": policy.Ask, "cd src && git checkout main.go": policy.Ask, "touch v2.0.0; git checkout v2.0.0": policy.Ask, "git checkout v2.0.0 a.txt": policy.Ask,
		"git checkout -- v2.0.0": policy.Ask, "cd \"$(x)\"; git checkout v2.0.0": policy.Ask, "git checkout v$(x)": policy.Ask, "git checkout ./v2.0.0": policy.Ask, "git checkout '*.go'": policy.Ask, "git checkout -f -b x": policy.Ask, "git checkout -B x v2.0.0": policy.Ask,
	} {
		if d := decide(script); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", script, d.Action, d.Rule, want)
		}
	}
}

func TestWhatIsOnlyReadIsNotAskedAsAWrite(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"source X", ". X", "less X", "less -R X", "more X", "bash X", "sh X", "bash -x X", "node X", "python3 X", "shellcheck X", "actionlint X", "cat X"} {
		f := careful()
		f.Defaults.Unanalysable = policy.Ask
		p := compiled(t, f)
		for _, path := range []string{"CLAUDE.md", ".envrc", ".husky/pre-commit", ".claude/x.js", ".github/workflows/ci.yml"} {
			script := strings.ReplaceAll(program, "X", path)
			if d := p(script); d.Rule == "builtin:run-later" || d.Rule == "builtin:build" || d.Rule == "builtin:shell-startup" {
				t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
			}
		}
	}
	p := compiled(t, careful())
	for _, script := range []string{"less -o CLAUDE.md a.txt", "less -oCLAUDE.md a.txt", "node --outfile CLAUDE.md x.js", "bash .husky/x > CLAUDE.md", "cp a.txt CLAUDE.md", "python3 x.py CLAUDE.md"} {
		if d := p(script); d.Rule != "builtin:run-later" {
			t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
		}
	}
}

// A test or a program that mentions a command is written and run without a question, where the sandbox holds what it
// does; a rule that denies the command is kept.
func TestWhatAFileMentionsIsNotAskedInASandbox(t *testing.T) {
	t.Parallel()
	f := careful()
	f.Commands = append(f.Commands, policy.Rule{ID: "outgoing", Action: policy.Ask, Classes: []string{"outgoing"}}, policy.Rule{ID: "publish", Action: policy.Deny, Run: []string{"npm publish **"}})
	in, out := confined(t, f)
	for _, write := range []string{"cat > x.go <<'E'\nfmt.Println(\"run git push\")\nE\n", "cat > x_test.go <<'E'\nif said != \"rm -rf x\" {}\nE\n", "cat > x_test.go <<'E'\n// sudo rm -rf /\nE\n", "echo 'run: git push' > x.yml\n"} {
		for _, run := range []string{"go build ./...", "go test ./...", "pytest", "npx tsc", "make"} {
			if d := in(write + run); d.Action != policy.Allow {
				t.Errorf("%s%s: %v by %s", write, run, d.Action, d.Rule)
			}
			if d := out(write + run); d.Rule == "" || d.Action == policy.Allow {
				t.Errorf("without a sandbox: %s%s: %v by %s", write, run, d.Action, d.Rule)
			}
			if d := in("echo 'npm publish' > x.yml\n" + run); d.Rule != "publish" {
				t.Errorf("a rule denies what is written for %s: %v by %s", run, d.Action, d.Rule)
			}
		}
	}
}

func compiled(t *testing.T, f policy.File) func(script string) policy.Decision {
	t.Helper()
	decide, _ := confined(t, f)
	return decide
}

// A URL that is only written down, and a refspec, are no hosts.
func TestWhatIsOnlyWrittenDownIsNotContacted(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for script, want := range map[string]string{
		"git remote add origin https://a.test/x": "", "git remote set-url origin https://a.test/x": "", "npm pkg set homepage=https://a.test": "", "npm config set registry https://a.test": "",
		"node -e 'console.log(\"https://a.test\")'": "", "python3 -c 'print(\"https://a.test\")'": "", "perl -pi -e 's#https://a.test#https://b.test#' f": "", "git fetch origin main:main": "", "git pull origin main:main": "", "git fetch . main:x": "",
		"git remote add -f origin https://a.test/x": "a.test", "git remote add origin https://a.test/x --fetch": "a.test", "git fetch https://a.test/x main:main": "a.test", "git fetch a.test:x main:main": "a.test", "git fetch --multiple origin a.test:x": "a.test",
		"git fetch --frobnicate x a.test:y": "a.test", "git clone https://a.test/x": "a.test", "node x.js --registry=https://a.test": "", "npm install --registry=https://a.test": "a.test", "perl x.pl https://a.test": "a.test", "git submodule add https://a.test/x": "a.test",
	} {
		got := ""
		for _, e := range analysed(t, ws, script) {
			if e.Kind == policy.Net {
				got = e.Host
			}
		}
		if got != want {
			t.Errorf("%s: it contacts %q, want %q", script, got, want)
		}
	}
}

// Code on standard input is seen like the same text in an argument.
func TestCodeOnStandardInputIsSearched(t *testing.T) {
	t.Parallel()
	file := policy.File{Name: "p.yaml", Defaults: permissive(), Commands: []policy.Rule{{ID: "push", Action: policy.Deny, Run: []string{"git push **"}}}}
	decide := judge(t, file)
	for _, script := range []string{
		"python3 -c 'import os;os.system(\"git push\")'", "python3 - <<'E'\nimport os;os.system(\"git push\")\nE", "python3 <<E\nos.system('git push')\nE", "python3 <<< 'os.system(\"git push\")'", "echo 'os.system(\"git push\")' | python3",
		"printf 'os.system(\"git push\")' | timeout 9 python3 -", "node <<'E'\nexec('git push')\nE", "perl <<'E'\nsystem('git push')\nE", "ruby <<< 'system(\"git push\")'", "make -f - <<< $'x:\\n\\tgit push'", "ed a.txt <<< '!git push'", "dc <<< '!git push'",
		"m4 <<< 'esyscmd(git push)'", "tclsh <<< 'exec git push'", "bash <(echo git push)", ". <(echo git push)", "source <(printf 'git push')", "exec 3<<'E'\ngit push\nE\nbash <&3", "bash /dev/fd/3 3<<< 'git push'", "python3 3<<< 'os.system(\"git push\")' <&3",
		"cat <(echo git push) | bash", "fish <<< 'git push'", "cat <<'E' | python3\nos.system(\"git push\")\nE", "python3 <(echo 'os.system(\"git push\")')", "python3 /dev/stdin <<< 'os.system(\"git push\")'",
		"base64 -d <<< Z2l0IHB1c2gK | sh", "echo 6769742070757368 | xxd -r -p | sh", "exec <<< 'git push'; bash", "exec < <(echo git push)\nsh", "printf 'git %s' push | tr a b | sh", "printf '%s %s\\n' git push | sh",
		"exec > x.sh; echo git push; exec > /dev/null; sh x.sh", "exec 3> x.sh; echo git push >&3; sh x.sh", "printf %s 'git ' > x.sh; printf %s push >> x.sh; sh x.sh", "echo -n 'git ' > x.sh; echo push >> x.sh; sh x.sh",
		"d=$(mktemp -d); echo 'git push' > $d/x; sh $d/x", "gcc -x c - <<< 'int main(){system(\"git push\");}' && ./a.out", "mkdir b; echo 'git push' > b/ls; chmod +x b/ls; PATH=b:$PATH; ls",
		"jq -rn '\"git push\"' | bash", "echo 'git push' > x.txt; bash < x.txt", "echo 'git push' > x.txt; cat x.txt | sh", "sh -s -- git push <<< '\"$@\"'", "echo '$1 $2' | bash -s git push", "xargs -I{} sh -c 'git {}' <<< push",
		"x() { git push; }; export -f x; bash -c x", "printf -v c '\\x67it push'; eval \"$c\"",
		"cp /dev/stdin y.sh <<< 'git push'; bash y.sh", "echo 'git push' > >(tee y.sh); bash y.sh", "echo 'git push' > x.sh; BASH_ENV=x.sh bash -c ls", "set -a; BASH_ENV=x.sh; echo 'git push' > x.sh; bash -c ls", "echo 'git push' > x.sh; env BASH_ENV=x.sh bash -c ls",
		"script -c bash <<< 'git push'", "git bisect run bash <<< 'git push'", "git rebase -x bash main <<< 'git push'", "flock x -c 'sh -x' <<< 'git push'", "npm exec -c bash <<< 'git push'", "git submodule foreach bash <<< 'git push'", "ssh host dash <<< 'git push'",
	} {
		if d := decide(script); d.Action != policy.Deny {
			t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
		}
	}
	for _, script := range []string{"git commit -F - <<'E'\ngit push later\nE", "cat <<< 'git push'", "python3 -c 'x' <<< 'git push'", "cat > notes.md <<'E'\ngit push\nE", "diff <(echo git push) a.txt", "grep x <<< 'git push'", "python3 x.py <<< 'git push'", "grep bash <<< 'git push'", "git log --grep bash <<< 'git push'"} {
		if d := decide(script); d.Rule == "push" {
			t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
		}
	}
}
