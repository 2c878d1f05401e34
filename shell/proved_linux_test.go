package shell_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

type attack struct {
	class, setup, script string
	proof                string // what bash does: "ran", "read", "wrote" or "printed", and what
	strict               bool   // only the strict policy need not allow it
	masked               bool   // the strict policy leaves it to the sandbox's masks
}

func readAttacks(t testing.TB) (list []attack) {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/proved.txt"))(t)
	var a attack
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		class, isClass := strings.CutPrefix(line, "== ")
		setup, isSetup := strings.CutPrefix(line, "setup: ")
		proof, isProof := strings.CutPrefix(line, "=> ")
		switch {
		case a.script == "" && (line == "" || strings.HasPrefix(line, "# ")):
		case isClass:
			a = attack{class: class}
		case isSetup:
			a.setup = setup
		case isProof:
			a.proof, a.masked = strings.CutSuffix(proof, " (masked)")
			a.proof, a.strict = strings.CutSuffix(a.proof, " (strict)")
			a.script = strings.TrimSuffix(a.script, "\n")
			list = append(list, a)
			a.script = ""
		default:
			a.script += line + "\n"
		}
	}
	return list
}

// provedFiles has evil, which must not run, and files that must not be read or written.
func provedFiles() map[string]string {
	return map[string]string{
		"w/": "", "home/": "", "out/": "", "w/sub/": "", "w/.git/": "", "w/.git/hooks/": "", "w/secrets/": "", "w/bad/": "",
		"w/.env": "KEY=SECRET\n", "w/secrets/key": "SECRET\n", "w/a.txt": "a\nb\n", "w/three.txt": "1\n2\n3\n",
		"w/evil": "-> ../bin/canary", "w/bad/ls": "-> ../../bin/canary", "w/link": "-> sub", "w/up": "-> ..",
		"w/pl.test": "a -o -v a[$(./evil)]\n", "w/pl.find": "x -o -exec ./evil ;\n", "w/pl.sort": "1 -o .git/hooks/pwned\n", "w/pl.sub": "a[$(./evil)]\n", "w/pl.cmd": "./evil\n", "w/pl.depth": "0 -exec ./evil ;\n",
		"w/pl.where": ". -maxdepth 0 -exec ./evil ;\n", "w/pl.newer": ". -exec ./evil ;\n", "w/pl.xargs": "1 ./evil\n", "w/pl.nice": "1 ./evil\n", "w/pl.ps4": "$(./evil)\n",
	}
}

func secrets() policy.Rule {
	return policy.Rule{ID: "secrets", Action: policy.Deny, Paths: []string{"${workspace}/.env", "${workspace}/secrets/**"}}
}

func blocklist(t testing.TB, workspace string) *policy.Policy {
	t.Helper()
	allow := policy.Defaults{Bash: policy.Allow, Read: policy.Allow, Write: policy.Allow, Net: policy.Allow, Unanalysable: policy.Ask}
	p := must.Get(policy.Compile(policy.Options{Workspace: workspace, Home: "/home"}, policy.File{
		Defaults: allow, Commands: []policy.Rule{{ID: "evil", Action: policy.Deny, Run: []string{"evil **"}}, {ID: "evil-ls", Action: policy.Deny, Run: []string{"ls"}, Except: []string{"ls **"}}},
		Paths: []policy.Rule{secrets()},
	}))(t)
	return p
}

// TestNoAttackIsAllowed proves each attack in bash, and that two policies do not allow it.
func TestNoAttackIsAllowed(t *testing.T) {
	must.Long(t)
	t.Parallel()
	m := newMachine(t, provedFiles())
	workspace := m.base + "/w"
	policies := map[string]*policy.Policy{"the strict policy": strictRules(t, workspace), "a blocklist": blocklist(t, workspace)}
	for _, a := range readAttacks(t) {
		must.Do(t, m.watch.reset())
		if a.setup != "" {
			must.Get(m.run(a.setup, true))(t)
		}
		effects := must.Get(predict(a.script, workspace, m.env))(t)
		o := must.Get(m.run(a.script, true))(t)
		if !o.did(a.proof, workspace) {
			t.Errorf("%s: bash has not %s, but %+v, by\n%s", a.class, a.proof, o, a.script)
			continue
		}
		allowing := ""
		for _, name := range []string{"the strict policy", "a blocklist"} {
			if (name == "the strict policy" || !a.strict) && policies[name].Decide(effects).Action == policy.Allow {
				allowing += " " + name
			}
		}
		predicted := stands(effects, func(e policy.Effect) bool {
			return e.Kind == policy.Read && covers(e, filepath.Join(workspace, a.name()))
		})
		if a.masked && allowing == " the strict policy" && predicted {
			continue
		}
		if allowing != "" || a.masked {
			t.Errorf("%s: bash has %s, and it is allowed by%s:\n%s\npredicted %v", a.class, a.proof, allowing, a.script, effects)
		}
	}
}

func (a attack) name() string {
	_, name, _ := strings.Cut(a.proof, " ")
	return name
}

func (o observed) did(proof, workspace string) bool {
	what, name, _ := strings.Cut(proof, " ")
	switch what {
	case "ran":
		return slices.ContainsFunc(o.ran, func(call []string) bool { return filepath.Base(call[0]) == name })
	case "read":
		return slices.Contains(o.read, filepath.Join(workspace, name))
	case "wrote":
		return slices.Contains(o.wrote, filepath.Join(workspace, name))
	case "printed":
		return strings.Contains(o.said, name)
	}
	panic(fmt.Sprintf("%q is no proof", proof))
}
