package shell

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// open allows everything but one directory, without the rules about /proc.
func open() policy.File {
	f := policy.File{
		Defaults: permissive(), Disable: []string{"builtin:process-memory", "builtin:system"},
		Paths: []policy.Rule{{ID: "vault", Action: policy.Deny, Paths: []string{"${workspace}/vault/**", "${workspace}/.env"}}},
	}
	f.Defaults.UnknownRead, f.Defaults.UnknownWrite = policy.Allow, policy.Allow
	return f
}

func TestNoPathThroughProcAvoidsARule(t *testing.T) {
	t.Parallel()
	decide := judge(t, open())
	for script, want := range map[string]policy.Action{
		// What the names lead to is known.
		"cat /proc/self/cwd/vault/key": policy.Deny, "cat /proc/self/cwd/.env": policy.Deny, "cat /proc/thread-self/cwd/.env": policy.Deny,
		"cat //proc/./self//cwd/src/../.env": policy.Deny, "cat /proc//self/../self/cwd/.env": policy.Deny, "cat /proc/self/task/7/cwd/.env": policy.Deny,
		"cat /proc/thread-self/../8/cwd/.env": policy.Deny, "cat /proc/self/root/$PWD/.env": policy.Deny, "cat /proc/net/../cwd/.env": policy.Deny,
		"cat /proc/self/fd/../cwd/.env": policy.Deny, "cat /dev/fd/../cwd/.env": policy.Deny, "cat /dev/../proc/self/cwd/.env": policy.Deny,
		"cat < /proc/self/cwd/.env": policy.Deny, "echo x > /proc/self/cwd/vault/key": policy.Deny, "rm /proc/self/cwd/.env": policy.Deny, "cd src; cat /proc/self/cwd/../.env": policy.Deny,
		"p=/proc/self; cat $p/cwd/.env": policy.Deny, "python3 -m x --file=/proc/self/cwd/.env": policy.Deny, "cat /proc/self/{exe,cwd/.env}": policy.Deny,
		"cat /proc/self/task/../cwd/.env": policy.Deny, "cat /proc/../proc/self/cwd/.env": policy.Deny, "grep -r x /proc/self/cwd/": policy.Ask,
		// It may be any file.
		"cat /proc/$$/cwd/vault_link/key": policy.Ask, "cat /proc/$PPID/cwd/.env": policy.Ask, "cat /proc/${BASHPID}/root/etc/x": policy.Ask, "cat /proc/1/cwd/.env": policy.Ask,
		"cat /proc/1/root/$PWD/.env": policy.Ask, "cat /proc/1/task/1/cwd/.env": policy.Ask, "cat /proc/self/map_files/*": policy.Ask, "cat /proc/self/exe": policy.Ask,
		"cat /proc/self/fd/3": policy.Ask, "cat /dev/fd/3/../.env": policy.Ask, "cat /dev/fd/0/../.env": policy.Ask, "exec 3<src; cat /proc/self/fd/3/../.env": policy.Ask,
		"cat /proc/*/cwd/.env": policy.Ask, "cat /pro?/self/cwd/key": policy.Ask, "cat /*/*/cwd/vault_link/key": policy.Ask, "cat /proc/[0-9]*/cwd/.env": policy.Ask, "cat < /proc/*/cwd/.env": policy.Ask,
		"cat $(echo /proc/self/cwd/.env; echo a)/proc/x /proc/$(echo self)/cwd/.env": policy.Ask, "x=$(echo cwd); cat /proc/self/$x/.env": policy.Ask, "cat /dev/fd/$RANDOM": policy.Ask, "cat /dev/../pro$RANDOM": policy.Ask,
		"cat < /proc/$$/cwd/.env": policy.Ask, "echo x > /proc/$$/cwd/.env": policy.Ask, "cp a.txt /proc/$$/cwd/.env": policy.Ask, "mytool --file=/proc/$$/cwd/.env": policy.Ask, "mytool /proc/$$/cwd/.env": policy.Ask,
		"cd /proc/self/cwd; cat vault_link": policy.Ask, "cd /proc/$$/cwd && cat vault_link/key": policy.Ask, "pushd /proc/$$/cwd; cat vault_link/key": policy.Ask, "cd /proc; cat $$/cwd/.env": policy.Ask, "cd /proc/*/cwd": policy.Ask,
		"git -C /proc/$$/cwd status": policy.Ask, "ln -s /proc p; cat p/self/cwd/.env": policy.Ask, "ln -s /proc/self p; cat p/cwd/.env": policy.Ask, "ln -s /proc/self/fd/0 p": policy.Ask, "grep -R x /proc/self": policy.Ask, "cp -rL /proc/self x": policy.Ask,
		"cat ../../../../../../../../proc/$$/cwd/.env": policy.Ask, "find /proc/$$/cwd/ -name key": policy.Ask, "tail -n1 /proc/$!/cwd/.env": policy.Ask, "for p in 1 2; do cat /proc/$p/cwd/.env; done": policy.Ask,
		// An open file is opened again for something else.
		"echo x > /dev/stdin < a.txt": policy.Ask, "exec > a.txt; cat /dev/stdout": policy.Ask, "echo x >/proc/self/fd/0": policy.Ask, "exec 63< a.txt; echo x > /dev/fd/63": policy.Ask,
		// Everyday use.
		"cat /proc/cpuinfo": policy.Allow, "cat /proc/self/status": policy.Allow, "head -n1 /proc/meminfo": policy.Allow, "cat /proc/loadavg /proc/uptime": policy.Allow, "cat /proc/net/dev": policy.Allow,
		"cat /dev/stdin < a.txt": policy.Allow, "echo x > /dev/stderr": policy.Allow, "echo x | tee /dev/stderr": policy.Allow, "echo x >/dev/null": policy.Allow, "cat /proc/self/fd/0 < a.txt": policy.Allow,
		"ls /proc": policy.Allow, "ls /proc/self/fd": policy.Allow, "cat /proc/sys/kernel/ostype": policy.Allow, "diff <(cat a.txt) <(cat b.txt)": policy.Allow, "cat /proc/self/cwd/a.txt": policy.Allow,
		"ls *": policy.Allow, "cat */main.go": policy.Allow, "ls /usr/*": policy.Allow, "cd src; ls": policy.Allow, "ls /*": policy.Allow, "exec 3<a.txt; cat <&3": policy.Allow,
	} {
		if d := decide(script); d.Action != want {
			t.Errorf("%s: %v by %s (%s), want %v", script, d.Action, d.Rule, d.Reason, want)
		}
	}
}

// To look whether a file is there, and at its attributes, reads nothing of it.
func TestARuleForAFileIsNotAboutItsAttributes(t *testing.T) {
	t.Parallel()
	f := open()
	f.Paths = append(f.Paths, policy.Rule{ID: "sources", Action: policy.Deny, Paths: []string{"${workspace}/src"}})
	decide := judge(t, f)
	for script, want := range map[string]policy.Action{
		"ls -l .env": policy.Allow, "ls .env a.txt": policy.Allow, "/bin/ls -la -- ./.env": policy.Allow, "dir .env": policy.Allow, "ls -l .e*": policy.Allow,
		"test -f .env": policy.Allow, "[ -e .env ]": policy.Allow, "[ -s .env -a ! -L .env ] && echo yes": policy.Allow, "[[ -f .env ]]": policy.Allow, "if [ ! -r .env ]; then echo no; fi": policy.Allow,
		"stat .env": policy.Allow, "stat -c %s .env": policy.Allow, "readlink -f .env": policy.Allow, "realpath .env": policy.Allow, "git check-ignore .env": policy.Allow, "git check-ignore -v .env a.txt": policy.Allow,
		"ln -s .env other; stat a.txt": policy.Deny, "stat src": policy.Allow, "test -d src": policy.Allow,
		// The content is read, or a directory listed.
		"[ -f .env ] && cat .env": policy.Deny, "stat a.txt < .env": policy.Deny, "file .env": policy.Deny, "wc -c .env": policy.Deny, "touch .env": policy.Deny, "test -f a.txt -a -s .env; source .env": policy.Deny,
		"ls src": policy.Deny, "ls -l inside": policy.Deny, "ls -R src": policy.Deny, "readlink -f .env | xargs cat .env": policy.Deny, "ls -l .env | xargs cat": policy.Deny, "mkdir .env; ls .env": policy.Deny,
		// A rule about all below a directory holds for the attributes too.
		"ls -l vault/key": policy.Deny, "test -f vault/key": policy.Deny, "[ -d vault ]": policy.Deny, "stat vault/key": policy.Deny, "readlink -f vault": policy.Deny, "ls vault": policy.Deny,
	} {
		if d := decide(script); d.Action != want {
			t.Errorf("%s: %v by %s (%s), want %v", script, d.Action, d.Rule, d.Reason, want)
		}
	}
	f.Paths[0].Ops, f.Paths[1].Ops = []policy.Kind{policy.Read}, []policy.Kind{policy.Read}
	decide = judge(t, f)
	for _, script := range []string{"rm .env; mkdir .env; ls .env", "mkdir -p new/x; mv new .env; ls .env", "cp -r new .env; ls .env/"} {
		if d := decide(script); d.Action != policy.Deny {
			t.Errorf("%s: %v by %s: a listing of what the script made", script, d.Action, d.Rule)
		}
	}
}

func TestALinkIntoProcIsResolvedForTheScript(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for name, target := range map[string]string{"own": "/proc/self/cwd", "other": "/proc/1/cwd", "top": "/proc", "input": "/dev/stdin", "again": "/proc/self/cwd/again"} {
		must.Do(t, os.Symlink(target, filepath.Join(ws, name)))
	}
	for script, want := range map[string]string{
		"cat own/a.txt":          "r a.txt; run cat own/a.txt",
		"cat top/self/cwd/a.txt": "r a.txt; run cat top/self/cwd/a.txt",
		"cat input":              "run cat input",
		"cat top/cpuinfo":        "r /proc/cpuinfo; run cat top/cpuinfo",
		"cat other/a.txt":        "opaque; r ; run cat other/a.txt",
		"cat again":              "opaque; run cat again",
		"cd own; cat a.txt":      "opaque; r ?; run cat a.txt",
	} {
		if got := shown(analysed(t, ws, script), ws, "/nowhere"); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
}

// TestWhatAPipeNamesIsReadByXargs denies files that a pipe may name.
func TestWhatAPipeNamesIsReadByXargs(t *testing.T) {
	t.Parallel()
	decide := judge(t, policy.File{
		Defaults: policy.Defaults{Bash: policy.Allow, Read: policy.Allow, Write: policy.Allow, UnknownRead: policy.Allow, Unanalysable: policy.Ask},
		Paths:    []policy.Rule{{ID: "secrets", Action: policy.Deny, Paths: []string{"${workspace}/.env", "${workspace}/src/*.pem"}}},
	})
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
		"find . | wc -l | xargs cat":               policy.Ask,
		"(find . | wc -l); echo a.txt | xargs cat": policy.Allow,
	} {
		if d := decide(script); d.Action != want {
			t.Errorf("%s: %v by %s (%v), want %v", script, d.Action, d.Rule, d.Effect, want)
		}
	}
}

// Files and directories that git takes from variables, and files of a revision.
func TestRulesReachPathsInVariablesOfGit(t *testing.T) {
	t.Parallel()
	decide := judge(t, open())
	for _, set := range []string{"GIT_DIR=vault", "GIT_WORK_TREE=vault", "GIT_COMMON_DIR=vault", "GIT_OBJECT_DIRECTORY=vault", "GIT_INDEX_FILE=vault/index", "GIT_TRACE=$PWD/vault/x", "GIT_TRACE2_EVENT=$PWD/vault/x"} {
		for _, script := range []string{set + " git log", "export " + set + "; git log", "env " + set + " git log"} {
			if d := decide(script); d.Action != policy.Deny {
				t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
			}
		}
	}
	for _, script := range []string{"git show HEAD:vault/x", "cd src; git cat-file -p HEAD:vault/x", "cd src; git add ':(top)vault/x'"} {
		if d := decide(script); d.Action != policy.Deny {
			t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
		}
	}
	for _, script := range []string{"GIT_TRACE=1 git log", "GIT_INDEX_FILE=/tmp/i git add -A", "GIT_DIR=.git git status"} {
		if d := decide(script); d.Action == policy.Deny {
			t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
		}
	}
}

// A copy of a program is that program.
func TestRulesReachCopiesOfPrograms(t *testing.T) {
	t.Parallel()
	decide := judge(t, policy.File{Defaults: permissive(), Commands: []policy.Rule{{ID: "rule", Action: policy.Deny, Run: []string{"git push **"}}}})
	for script, want := range map[string]policy.Action{
		"cp /usr/bin/git x; ./x push": policy.Deny, "ln -s /usr/bin/git x; ./x push": policy.Deny, "ln /usr/bin/git x && ./x -C src push": policy.Deny, "install -m 755 /usr/bin/git x; ./x push": policy.Deny,
		"cat /usr/bin/git > x; chmod +x x; ./x push": policy.Deny, "mkdir d; cp /usr/bin/git d; d/git push": policy.Deny, "if [ -f a ]; then cp /usr/bin/git x; fi; ./x push": policy.Deny,
		"cp $(which git) x; ./x push": policy.Deny, "cp /usr/bin/git x; ./x status": policy.Ask, "cp /usr/bin/git x; ls": policy.Allow,
	} {
		if d := decide(script); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", script, d.Action, d.Rule, want)
		}
	}
}

func TestPatternsMatchNamesThatTheScriptMakes(t *testing.T) {
	t.Parallel()
	f := open()
	f.Paths = []policy.Rule{{ID: "new", Action: policy.Deny, Ops: []policy.Kind{policy.Read}, Paths: []string{"${workspace}/.new"}}}
	decide := judge(t, f)
	for _, script := range []string{
		"cat .n*", "cat ./.n*", "cat .//.n*", "cat .n*/", "cat $PWD/./.n*", "cat src/../.n*", "cat s*/../.n*", "cd src; cat ../.n*", "cat < ./.n*", "for f in ./.n*; do cat $f; done", `cat .[n]\e*`, "tar cf a.tar ./.n*",
	} {
		if d := decide("echo x > .new; " + script); d.Action != policy.Deny {
			t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
		}
	}
}

// What is known of a name decides, and a directory entered by pushd is one.
func TestRulesReachNamesThatAreKnownInPart(t *testing.T) {
	t.Parallel()
	decide := judge(t, open())
	for script, want := range map[string]policy.Action{
		"echo x > vault/$(echo key)": policy.Deny, "echo x >> \"vault/$x\"": policy.Deny, "cat < vault/$x": policy.Deny, "echo x > ./.e*v": policy.Deny, "cat < .en?": policy.Deny, "pushd vault && echo x > key": policy.Deny,
		"pushd vault; cat key": policy.Deny, "sh -c 'pushd src; cat .env'": policy.Deny, "bash -c 'trap \"cat .env\" EXIT'": policy.Deny, "pushd src && touch x && popd": policy.Allow, "echo x > src/$(date)": policy.Allow, "echo x > $(date)": policy.Allow,
	} {
		if d := decide(script); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", script, d.Action, d.Rule, want)
		}
	}
}
