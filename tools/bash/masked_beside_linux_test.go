package bash_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/tools"
)

// Two calls at a time, each with a yes to another file: neither reads the other's.
func TestCallsAtATimeHaveEachItsOwnYes(t *testing.T) {
	t.Parallel()
	v := newVault(t, "mkdir sub; echo ONE >.env; echo TWO >sub/.env")
	first, second := *v, *v
	first.opened, second.opened = v.read(".env"), v.read("sub/.env")
	done := make(chan string)
	go func() {
		_, out := first.call("cat .env; ! cat sub/.env; touch begun; until [ -e go ]; do sleep 0.01; done; cat .env; ! cat sub/.env")
		done <- out
	}()
	v.person("until [ -e begun ]; do sleep 0.01; done")
	if out := second.succeeds("cat sub/.env; ! cat .env"); !strings.HasPrefix(out, "TWO\n") || strings.Contains(out, "ONE") {
		t.Errorf("the second: %q", out)
	}
	v.fails("cat .env")
	v.fails("cat sub/.env")
	v.person("touch go")
	if out := <-done; strings.Count(out, "ONE\n") != 2 || strings.Contains(out, "TWO") {
		t.Errorf("the first: %q", out)
	}
	v.fails("cat .env")
}

// What a rule is about is masked also in a directory that a person has added for one call.
func TestADirectoryAddedForOneCallHasItsMasks(t *testing.T) {
	t.Parallel()
	v := newVault(t, "echo here >key.pem")
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	added, err := os.MkdirTemp(home, "toold-test-")
	if err != nil || (sandbox.Profile{}).Scratch(added) {
		t.Skipf("the home cannot be written, or is one that each call has of its own: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(added) })
	v.person("mkdir " + added + "/deep; echo SECRET >" + added + "/deep/key.pem; echo open >" + added + "/open")
	grant := must.Get(escalation.Limits{Write: []string{added}}.Check(v.tool.Profile, escalation.Words{Write: added}))(t)
	defer grant.Close()
	script := "cd " + added + "; cat open && echo new >made && ! cat deep/key.pem && ! ln deep/key.pem other && ! cat $OLDPWD/key.pem && mv deep moved; cat moved/key.pem"
	r, out := run(t, v.build(script), tools.IO{Policy: v.policy, Escalation: grant})
	if r.Exit == nil || strings.Contains(out, "SECRET") || !strings.HasPrefix(out, "open\n") || !strings.Contains(r.Text+out, "denied") {
		t.Errorf("%+v %s\n%s", r.Exit, r.Text, out)
	}
	v.person("test $(cat " + added + "/made) = new; test $(cat " + added + "/deep/key.pem) = SECRET")
	v.fails("cat " + added + "/made/nothing; test -w " + added)
}

// npm meets the rules as any program does, and works beside a file that is kept from it.
func TestNpmMeetsTheRules(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	v := newVault(t, `echo 'TOKEN=SECRET' >.env
		echo '{"name":"app","version":"1.0.0","scripts":{"read":"node read.js","cat":"cat .env","fine":"node -e 0"}}' >package.json
		echo 'console.log(require("fs").readFileSync(".env", "utf8"))' >read.js
		mkdir -p node_modules/left; echo OPEN=1 >node_modules/left/.env`)
	v.tool.Env = append(v.tool.Env, "npm_config_cache=/tmp/npm", "npm_config_update_notifier=false", "npm_config_offline=true", "npm_config_ignore_scripts=false")
	for _, script := range []string{"npm run read", "npm run -s cat", "npm pack", "npm pack --dry-run && node read.js"} {
		if out := v.fails(script); strings.Contains(out, "SECRET") || !strings.Contains(out, "rule dotenv") {
			t.Errorf("%s: %s", script, out)
		}
	}
	v.succeeds("npm run fine && cat node_modules/left/.env")
	v.person("echo .env >.npmignore")
	v.succeeds("npm pack && tar tzf app-1.0.0.tgz | grep -q package.json && ! tar tzf app-1.0.0.tgz | grep -q env")
	v.opened = v.read(".env")
	if out := v.succeeds("npm run -s read"); out != "TOKEN=SECRET\n\n" {
		t.Errorf("with a yes: %q", out)
	}
}

// A file that a person has saved behind a flood of other changes is masked in the call that
// begins next, though the flood goes on.
func TestAFileSavedBesideAFloodIsMasked(t *testing.T) {
	t.Parallel()
	v := newVault(t, "mkdir sub flood; echo SECRET >sub/.env")
	flood := *v
	done := make(chan struct{})
	go func() {
		defer close(done)
		flood.call("touch begun; i=0; until [ -e stop ]; do : >flood/$((i++ % 5000)); done")
	}()
	v.person("until [ -e begun ]; do sleep 0.01; done")
	for i := range 20 {
		name := filepath.Join(v.ws, "sub", []string{".env", "a.pem"}[i%2])
		must.Do(t, os.WriteFile(name+"~", []byte("SECRET\n"), 0o600))
		must.Do(t, os.Rename(name+"~", name))
		if _, out := v.call("cat sub/.env sub/a.pem"); strings.Contains(out, "SECRET") {
			t.Errorf("round %d: %s", i, out)
		}
		must.Do(t, os.Remove(name))
	}
	v.person("touch stop")
	<-done
}
