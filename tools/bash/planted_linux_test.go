package bash_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
)

// restart has the vault watched anew, as by the next daemon.
func (v *vault) restart() {
	v.t.Helper()
	o := protect.Options{Roots: []string{v.ws}, Quarantine: filepath.Dir(v.ws) + "/quarantine"}
	tracker, watcher, err := masks.New(o, v.policy)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(watcher.Close)
	v.tool.Protect, v.tool.Masks = watcher, tracker
}

// What a call plants under a name of a rule does not let it read what a person puts there.
func TestAPlantedNameIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"hard link":         `python3 -c 'import os; open("build.cfg","w"); os.link("build.cfg",".env")'`,
		"linked to":         `: >.env; ln .env build.cfg`,
		"in a directory":    `mkdir -p sub; : >build.cfg; ln build.cfg sub/x; mv sub/x .env`,
		"exchanged":         `: >build.cfg; ln build.cfg x; : >.env; python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100,b"x",-100,b".env",2)'; rm -f x`,
		"three names":       `: >build.cfg; ln build.cfg .env; ln build.cfg secret.pem`,
		"directory renamed": `mkdir t; : >build.cfg; ln build.cfg t/secrets; mv t/secrets s; ln s .env; rm s; rmdir t`,
		"pipe":              `mkfifo .env`,
		"socket":            `python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(".env")'`,
		"linked pipe":       `mkfifo p; ln p .env`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, "echo x >x.txt")
			r, _ := v.call(script)
			if len(r.Denials) == 0 || !strings.Contains(r.Text, ".env") {
				t.Errorf("not reported: %+v", r)
			}
			v.person("test ! -e .env; echo SECRET >>.env")
			if out := v.succeeds("grep -rs SECRET . || true; cat build.cfg || true"); strings.Contains(out, "SECRET") {
				t.Error(out)
			}
		})
	}
}

// A file that rules keep from calls is kept under all its names.
func TestAMaskHoldsForEveryNameOfAFile(t *testing.T) {
	t.Parallel()
	v := newVault(t, "mkdir a b; echo SECRET >.env; ln .env plain; ln .env a/plain; mkfifo x.pem; echo open >open")
	all := "grep -rs SECRET . --devices=skip; cat plain a/plain b/plain c/plain 2>&1; cat open"
	for _, change := range []string{"true", "mv a/plain b", "mv b c", "rm plain; ln .env c/other; cp c/other t; mv t copy; rm copy"} {
		v.person(change)
		if out := v.succeeds(all); strings.Contains(out, "SECRET") || !strings.Contains(out, "open") {
			t.Errorf("%s: %s", change, out)
		}
	}
	v.fails("timeout 2 cat x.pem")
	v.restart()
	if out := v.succeeds(all); strings.Contains(out, "SECRET") {
		t.Error(out)
	}
}

// What a link led to is kept although a call took the link away.
func TestWhatALinkLedToStaysMasked(t *testing.T) {
	t.Parallel()
	reload := func(v *vault) {
		v.policy = compile(v.t, v.ws, append(rules(), policy.Rule{ID: "other", Action: policy.Deny, Paths: []string{"/nowhere/x"}}))
	}
	for name, script := range map[string]string{
		"removed":          `python3 -c 'import os; os.unlink("sub/.env")'`,
		"replaced":         "ln -sf ../x.txt sub/.env",
		"renamed":          "mv sub/.env sub/old",
		"with directory":   "rm -r sub",
		"way changed":      "rm way; ln -s other way",
		"both":             "rm way sub/.env; ln -s other sub/.env",
		"another in place": "rm sub/.env; : >sub/.env",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, "mkdir sub config other; echo SECRET >config/prod.cfg; ln -s config way; ln -s ../way/prod.cfg sub/.env; echo x >x.txt; : >other/prod.cfg")
			v.fails("cat config/prod.cfg")
			v.succeeds(script)
			for _, again := range []func(*vault){func(*vault) {}, reload, (*vault).restart, (*vault).restart} {
				again(v)
				if out := v.succeeds("grep -rs SECRET . || true"); strings.Contains(out, "SECRET") {
					t.Error(out)
				}
			}
			v.person("[ -e config ] || mkdir config; echo SECRET2 >t; mv t config/prod.cfg") // as editors save
			if out := v.succeeds("grep -rs SECRET . || true"); strings.Contains(out, "SECRET") {
				t.Error(out)
			}
		})
	}
}

// A link that leads nowhere yet keeps what comes to where it leads.
func TestALinkThatLeadsNowhereIsFollowedLater(t *testing.T) {
	t.Parallel()
	v := newVault(t, "mkdir sub")
	v.succeeds("ln -s ../build.cfg sub/.env")
	v.person("echo SECRET >>sub/.env")
	v.fails("cat build.cfg")
	v = newVault(t, "mkdir sub")
	v.succeeds("echo code >sub/src.go; ln -s src.go sub/.env") // what is written behind a link stays masked
	v.succeeds("rm sub/.env")
	v.succeeds("cat sub/src.go") // it kept nothing
}

// Files of a call that are too many for masks go with it.
func TestTooManyNamesOfACallGoWithIt(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"files":       "for i in {1..1100}; do : >.env.$i; : >$i.pem; done",
		"directories": "for i in {1..1100}; do mkdir d$i; : >d$i/.env; done",
		"secrets":     "for i in {1..1100}; do : >secret$i.pem; done",
		"links":       ": >one; for i in {1..1100}; do ln one $i.pem; done",
		"waits":       "for i in {1..1500}; do : >$i.pem; done; until [ -e never ]; do sleep 0.05; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVault(t, "mkdir src; echo SECRET >src/.env; echo code >src/code")
			r, _ := v.call(script)
			if r.Failure == "" && len(r.Denials) == 0 {
				t.Errorf("not reported: %+v", r)
			}
			v.succeeds("cat src/code; ! cat src/.env")
			v.restart()
			v.succeeds("cat src/code; ! cat src/.env")
		})
	}
	v := newVault(t, "mkdir src; echo SECRET >src/.env; echo code >src/code")
	v.succeeds("for i in {1..600}; do : >$i.pem; done")
	if r, _ := v.call("for i in {601..1200}; do : >$i.pem; done"); len(r.Denials) == 0 {
		t.Errorf("%+v", r)
	}
	v.succeeds("cat src/code")
}
