package bash_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
)

// vault is a workspace under a policy whose rules keep files from programs.
type vault struct {
	t      testing.TB
	ws     string
	tool   bash.Options
	policy *policy.Policy
	opened []policy.Effect
}

// rules are the path rules that tests begin with: .env is asked, keys and secrets are denied,
// and what is in pinned can be read only.
func rules() []policy.Rule {
	return []policy.Rule{
		{ID: "dotenv", Action: policy.Ask, Paths: []string{"${workspace}/**/.env"}, Except: []string{"${workspace}/**/node_modules/**"}, Reason: "it may hold credentials"},
		{ID: "keys", Action: policy.Deny, Paths: []string{"**/*.pem"}, Ops: []policy.Kind{policy.Read}},
		{ID: "secrets", Action: policy.Deny, Paths: []string{"${workspace}/secrets/**"}},
		{ID: "pinned", Action: policy.Deny, Paths: []string{"${workspace}/pinned/**"}, Ops: []policy.Kind{policy.Write}},
	}
}

func compile(t testing.TB, ws string, paths []policy.Rule) *policy.Policy {
	t.Helper()
	p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: "/nowhere", Tmp: "/tmp"}, policy.File{Paths: paths}))(t)
	return p
}

// newVault makes a workspace by a script that runs in it, as a person would.
func newVault(t testing.TB, setup string) *vault {
	t.Helper()
	return newVaultOf(t, setup, []string{".git/hooks", ".git/config", ".envrc"})
}

// newVaultOf is newVault with other protected names.
func newVaultOf(t testing.TB, setup string, names []string) *vault {
	t.Helper()
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	v := &vault{t: t, ws: filepath.Join(base, "ws")}
	must.Do(t, os.Mkdir(v.ws, 0o700))
	v.person(setup)
	v.policy = compile(t, v.ws, rules())
	o := protect.Options{Roots: []string{v.ws}, Names: names, Quarantine: base + "/quarantine"}
	tracker, watcher, err := masks.New(o, v.policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Close)
	pool := executor.NewPool(1, nil)
	t.Cleanup(pool.Close)
	v.tool = bash.Options{
		Workspace: v.ws, Terminal: executor.Off, Protect: watcher, Masks: tracker, Pool: pool,
		Env: append(executor.BaseEnv(executor.EnvOptions{From: os.Environ()}),
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"),
		Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: v.ws},
	}
	return v
}

// person runs a script in the workspace outside of any sandbox.
func (v *vault) person(script string) {
	v.t.Helper()
	c := exec.CommandContext(v.t.Context(), "bash", "-ec", script)
	c.Dir = v.ws
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := c.CombinedOutput(); err != nil {
		v.t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// build builds a call of a script.
func build(t testing.TB, tool tools.Tool, script string) tools.Invocation {
	t.Helper()
	args := must.Get(json.Marshal(map[string]string{"command": script}))(t)
	inv := must.Get(tool.Build(args))(t)
	return inv
}

// run runs a call and returns what it printed on both streams. Without a sandbox it skips the test.
func run(t testing.TB, inv tools.Invocation, io tools.IO) (tools.Result, string) {
	t.Helper()
	var out strings.Builder
	io.Output = func(_ tools.Stream, p []byte) { out.Write(p) }
	r := inv.Execute(t.Context(), io)
	if r.Failure == tools.SandboxUnavailable && io.Escalation == nil && !strings.Contains(r.Text, "too many files") {
		t.Skip("this machine has no sandbox: " + r.Text)
	}
	return r, out.String()
}

func (v *vault) build(script string) tools.Invocation {
	v.t.Helper()
	return build(v.t, bash.New(v.tool), script)
}

// call runs a script as a call.
func (v *vault) call(script string) (tools.Result, string) {
	v.t.Helper()
	return run(v.t, v.build(script), tools.IO{Policy: v.policy, Opened: v.opened})
}

// succeeds runs a script as a call that has to end with 0, and returns its output.
func (v *vault) succeeds(script string) string {
	v.t.Helper()
	r, out := v.call(script)
	if r.Exit == nil || r.Exit.Code != 0 {
		v.t.Errorf("%s: %+v %s\n%s", script, r.Exit, r.Text, out)
	}
	return out
}

// fails runs a script as a call that must not end with 0, and returns output and text.
func (v *vault) fails(script string) string {
	v.t.Helper()
	r, out := v.call(script)
	if r.Exit == nil || r.Exit.Code == 0 {
		v.t.Errorf("%s went well: %s\n%s", script, r.Text, out)
	}
	return out + r.Text
}

// read is a person's yes to reading a path.
func (v *vault) read(name string) []policy.Effect {
	path := filepath.Join(v.ws, name)
	return []policy.Effect{{Kind: policy.Read, Path: path, Canonical: path}}
}

func TestNoProgramReadsWhatARuleKeeps(t *testing.T) {
	t.Parallel()
	v := newVault(t, `
		mkdir -p sub secrets/deep pinned node_modules/x
		for f in .env sub/.env key.pem secrets/a secrets/deep/b node_modules/x/.env; do echo SECRET >$f; done
		echo open >sub/open.txt; echo fixed >pinned/f`)
	for _, script := range []string{
		"cat .env", "cat $(echo .e)nv", "cat sub/.env", "cat key.pem", "cat secrets/a", "cat secrets/deep/b", "ls secrets",
		`python3 -c 'print(open(".env").read())'`, `sh -c 'cd sub; exec cat .env'`, "grep -r SECRET . --exclude-dir=node_modules",
		"tar cf - .env", "ln .env other && cat other", "mv .env other && cat other", "cp .env other; cat other",
		"mv sub other && cat other/.env", "mv secrets other && cat other/a", "dd if=.env", "echo x >>.env", "rm .env", "touch secrets/new",
		"ln -s pinned way; python3 -c 'open(\"way/f\", \"a\")'", "ln -s /usr usr; python3 -c 'open(\"usr/toold-test\", \"w\")'",
		"echo x >pinned/f", "rm pinned/f", "touch pinned/new", "mv pinned other",
	} {
		if out := v.fails(script); strings.Contains(out, "SECRET\n") {
			t.Errorf("%s: %s", script, out)
		}
	}
	if out := v.succeeds("grep -rh . sub/open.txt pinned node_modules; stat -c %a:%s .env"); out != "open\nfixed\nSECRET\n0:1\n" {
		t.Errorf("what no rule keeps: %q", out)
	}
	v.person("test $(cat .env)$(cat secrets/a) = SECRETSECRET; echo more >>.env")
}

func TestAReturnNamesTheRuleOfAMaskedPath(t *testing.T) {
	t.Parallel()
	v := newVault(t, "git init -q; mkdir sub; echo SECRET >sub/.env; echo SECRET >key.pem")
	for script, want := range map[string]string{
		"cat sub/.env":                               `rule dotenv asks first (it may hold credentials); if you need it, have a command read it by this name, or a call with "escalate": {"read": ["sub/.env"]}: the user is asked`,
		"cd sub; python3 -c 'open(\".env\")'":        `cannot read sub/.env: rule dotenv`,
		"cat $PWD/key.pem":                           `cannot read key.pem: rule keys denies it; do without it, or ask the user to change the rule`,
		"cp sub/.env x || { echo 'no' >&2; false; }": "rule dotenv",
	} {
		if out := v.fails(script); !strings.Contains(out, want) {
			t.Errorf("%s: %s", script, out)
		}
	}
	for _, script := range []string{
		"echo sub/.env", "echo sub/.env.example key.pem.bak x.key.pem; false", "ls -a . sub; exit 1", "git status; exit 1", "echo 'error: bad config, see hooks or key.pem' >&2; exit 1",
	} {
		if r, _ := v.call(script); len(r.Denials) > 0 {
			t.Errorf("%s: %+v", script, r.Denials)
		}
	}
}

func TestAYesTakesTheMaskAwayForOneCall(t *testing.T) {
	t.Parallel()
	v := newVault(t, "mkdir sub; echo SECRET >.env; echo OTHER >sub/.env; echo KEY >key.pem")
	v.opened = append(v.read(".env"), v.read("key.pem")...)
	if out := v.succeeds("cat .env; ! cat sub/.env; ! cat key.pem"); !strings.HasPrefix(out, "SECRET\n") || strings.Contains(out, "KEY") {
		t.Errorf("with a yes: %q", out)
	}
	v.succeeds("cp .env sub/copy.pem; ! echo more >>.env")
	v.opened[0].Kind = policy.Write
	v.succeeds("echo more >>.env")
	v.opened = nil
	v.fails("cat .env")
	v.fails("cat sub/copy.pem")
}

func TestAChangedPolicyHoldsForTheNextCall(t *testing.T) {
	t.Parallel()
	v := newVault(t, "echo A >a.txt; echo SECRET >.env")
	v.succeeds("cat a.txt")
	v.fails("cat .env")
	v.policy = compile(t, v.ws, []policy.Rule{{ID: "texts", Action: policy.Deny, Paths: []string{"**/*.txt"}}})
	v.fails("cat a.txt")
	v.succeeds("cat .env")
	v.policy = compile(t, v.ws, nil)
	v.succeeds("cat .env a.txt")
}

func TestWhatAppearsBetweenCallsIsMaskedInTheNext(t *testing.T) {
	t.Parallel()
	v := newVault(t, "mkdir -p a/b; echo x >a/b/x")
	v.succeeds("true")
	v.person("echo SECRET >a/b/.env")
	v.fails("cat a/b/.env")
	v.person("mv a c")
	v.fails("cat c/b/.env")
	v.person("mkdir secrets plain; echo S >secrets/s; echo P >plain/p")
	v.fails("cat secrets/s")
	v.succeeds("cat plain/p")
	v.person("rm -r secrets; mv plain secrets")
	v.fails("cat secrets/p")
	v.person("mv secrets plain; rm c/b/.env; echo open >c/b/open")
	v.succeeds("cat plain/p c/b/open")
	v.person("echo NEW >t; mv t c/b/.env") // as editors save
	v.fails("cat c/b/.env")
}

func TestWhatACallMadeItMayRead(t *testing.T) {
	t.Parallel()
	v := newVault(t, "echo A=1 >.env.example")
	v.succeeds("cp .env.example .env && grep -q A .env && mkdir secrets && echo x >secrets/x && cat secrets/x")
	v.succeeds("cat .env secrets/x && echo B=2 >>.env")
	v.succeeds("cat .env && sed -i s/A/C/ .env")
	v.succeeds("cat .env")
	v.person("echo SECRET >>.env")
	v.fails("cat .env")
	v.person("echo S >secrets/y")
	v.fails("cat secrets/y")
	v.succeeds("cat secrets/x")
}

func TestGitWorksBesideAnIgnoredFile(t *testing.T) {
	t.Parallel()
	v := newVault(t, "git init -q -b main; echo .env >.gitignore; echo a >a; git add .; git commit -qm one; echo SECRET >.env; git branch other")
	if out := v.succeeds("git status --porcelain"); out != "" {
		t.Errorf("status: %q", out)
	}
	v.succeeds("echo b >>a && git add . && git commit -qm two && echo c >>a && git stash -q && git checkout -q other && git checkout -q main && git stash pop -q && git add -A && git commit -qam three")
	v.person("test $(cat .env) = SECRET; git fsck --strict; test -z \"$(git ls-files .env)\"; test -z \"$(git status --porcelain)\"")
}

func TestGitFailsAloudOnAnUntrackedFile(t *testing.T) {
	t.Parallel()
	v := newVault(t, "git init -q -b main; echo a >a; git add .; git commit -qm one; git branch other; echo SECRET >.env")
	if out := v.succeeds("git status --porcelain"); out != "?? .env\n" {
		t.Errorf("status: %q", out)
	}
	v.succeeds("echo b >>a && git commit -qam two && echo c >>a && git stash -q && git stash pop -q && git checkout -q -- a && git checkout -q other && git checkout -q main")
	if out := v.fails("git add ."); !strings.Contains(out, "Permission denied") || !strings.Contains(out, "rule dotenv") {
		t.Errorf("add: %s", out)
	}
	v.fails("git stash -u")
	v.person("test $(cat .env) = SECRET; test -z \"$(git ls-files .env)\"")
}

func TestGitWorksWithATrackedFile(t *testing.T) {
	t.Parallel()
	for name, pack := range map[string]string{"loose": "true", "packed": "git gc -q", "sha256": "--object-format=sha256"} {
		format := ""
		if strings.HasPrefix(pack, "--") {
			format, pack = pack, "true"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, "git init -q -b main "+format+"; echo ONE >.env; echo a >a; git add .; git commit -qm one; git checkout -qb other; echo TWO >.env; git commit -qam two; git checkout -q main; "+pack)
			v.succeeds("test $(cat .env) = ONE && git checkout -q other && test $(cat .env) = TWO && git checkout -q main && git status --porcelain && echo b >>a && git add . && git commit -qm three && echo c >>a && git stash -q && git stash pop -q")
			v.person("echo SECRET >.env") // no blob yet
			if out := v.fails("cat .env"); strings.Contains(out, "SECRET") {
				t.Errorf("a changed file: %s", out)
			}
			v.fails("git commit -qam four")
			v.person("test $(cat .env) = SECRET; test $(git show HEAD:.env) = ONE; git add .env")
			v.succeeds("cat .env && git commit -qm four")
		})
	}
}

func TestADenyingRuleMasksATrackedFile(t *testing.T) {
	t.Parallel()
	v := newVault(t, "git init -q -b main; echo ONE >key.pem; echo a >a; git add .; git commit -qm one; git checkout -qb other; echo TWO >key.pem; git commit -qam two; git checkout -q main")
	v.fails("cat key.pem")
	if out := v.fails("git checkout other"); !strings.Contains(out, "key.pem") {
		t.Errorf("checkout: %s", out)
	}
	v.person("test $(cat key.pem) = ONE; test -z \"$(git status --porcelain)\"; test $(git branch --show-current) = main")
}

// meanwhile runs a script as a call, which says when it has begun by making the file begun,
// and lets a person do something by then.
func (v *vault) meanwhile(script, person string) (tools.Result, string) {
	v.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.person("until [ -e begun ]; do sleep 0.01; done; " + person)
	}()
	r, out := v.call("touch begun; " + script)
	<-done
	v.person("rm begun")
	return r, out
}

func TestACallEndsWhenAMaskedFileIsReplaced(t *testing.T) {
	t.Parallel()
	v := newVault(t, "mkdir sub; echo SECRET >sub/.env; echo S >tracked.txt")
	for _, save := range []string{
		"echo NEWER >sub/.swp; mv sub/.swp sub/.env",                     // vim, sed -i
		"rm sub/.env; echo NEWER >sub/.env",                              // removed and made again
		"mv sub sub.old; mkdir sub; echo NEWER >sub/.env; rm -r sub.old", // with the directory
		"cp sub/.env sub/.env~; echo NEWER >sub/x; mv sub/x sub/.env; rm sub/.env~",
	} {
		r, out := v.meanwhile("for ((;;)); do sleep 0.01; done", save)
		if r.Failure != tools.ProtectedPath || len(r.Denials) != 1 || r.Denials[0].Setting != "dotenv" || !strings.Contains(r.Text, "run it again") {
			t.Errorf("%s: %+v\n%s", save, r, out)
		}
		v.fails("cat sub/.env")
	}
	// What is written into the file itself stays under the mask.
	r, out := v.meanwhile("until [ -e go ]; do sleep 0.01; done; cat sub/.env", "echo NEWEST >>sub/.env; touch go")
	if r.Failure != "" || strings.Contains(out, "NEWEST") || r.Exit.Code == 0 {
		t.Errorf("written in place: %+v\n%s", r, out)
	}
}

func TestMoreMasksThanACallMayHaveAreRefused(t *testing.T) {
	t.Parallel()
	v := newVault(t, "for i in {1..1025}; do echo >$i.pem; done; mkdir many; echo x >x")
	r, _ := v.call("cat x")
	if r.Failure != tools.SandboxUnavailable || !strings.Contains(r.Text, "1025 here, 1025 of them by rule keys") {
		t.Errorf("%+v", r)
	}
	v.person("mv *.pem many; echo open >many/open; mkdir src; echo SECRET >src/key.pem; echo code >src/code")
	v.succeeds("cat x src/code; ! cat src/key.pem") // a directory that holds most of them is masked as a whole
	v.fails("cat many/open")
	v.fails("mv many other")
	v.person("rm many/1.pem many/2.pem")
	v.succeeds("cat x many/open")
	v.fails("cat many/3.pem")
	v.succeeds("mkdir made; for i in {1..20}; do echo $i >made/$i.pem; done")
	v.succeeds("cat made/7.pem") // what calls made does not count
	v.person("rm -r many; mkdir -p secrets/{a,b}; for i in {1..1025}; do echo >secrets/a/$i; done")
	if out := v.fails("cat secrets/a/1"); !strings.Contains(out, "rule secrets") { // a directory is one
		t.Error(out)
	}
}

func TestALinkIsMaskedByWhatItLeadsTo(t *testing.T) {
	t.Parallel()
	v := newVault(t, "mkdir conf; echo SECRET >conf/dev; ln -s conf/dev .env; ln -s /etc/hostname other.pem")
	v.fails("cat .env")
	v.fails("cat conf/dev")
	v.succeeds("rm .env; echo mine >.env")
	v.fails("cat conf/dev")
	v.succeeds("cat other.pem")
}

// However many files a call makes in the background, later calls run.
func TestACallStopsNoOtherByTheFilesThatItMakes(t *testing.T) {
	t.Parallel()
	v := newVault(t, "mkdir src; echo SECRET >src/.env; echo code >src/code")
	v.meanwhile("mkdir -p e f/g; for i in {1..1100}; do : >e/$i.pem; : >f/g/$i.pem; done; until [ -e go ]; do sleep 0.01; done",
		"until [ -e f/g/1100.pem ]; do sleep 0.01; done; echo changed >e/1.pem; touch go")
	v.policy = compile(t, v.ws, append(rules(), policy.Rule{ID: "other", Action: policy.Deny, Paths: []string{"/nowhere/x"}})) // what calls made is forgotten
	v.succeeds("cat src/code; ! cat src/.env; touch src/new")
}
