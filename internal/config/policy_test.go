package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

// options are the places of a machine that does not exist.
func options(t *testing.T) policy.Options {
	t.Helper()
	return policy.Options{Workspace: t.TempDir(), Home: "/home/someone", Tmp: "/tmp"}
}

func TestTheBuiltInPolicyCompiles(t *testing.T) {
	t.Parallel()
	p, err := LoadPolicy("", options(t))
	if err != nil {
		t.Fatal(err)
	}
	d := p.Decide([]policy.Effect{{Kind: policy.Exec, Argv: []policy.Word{{Text: "curl"}, {Text: "example.org"}}}})
	if d.Action != policy.Ask || d.Rule != "defaults.bash" || d.Source != "careful.yaml (built-in)" {
		t.Errorf("an unknown program: %+v", d)
	}
}

func TestARuleIsNamedWithItsFileAndLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	src := "version: 1\ndefaults: {bash: allow}\ncommands:\n  - id: no-push\n    decision: deny\n    run: [\"git push **\"]\n    reason: releases are made by people\n"
	if err := os.WriteFile(path, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := LoadPolicy(path, options(t))
	if err != nil {
		t.Fatal(err)
	}
	d := p.Decide([]policy.Effect{{Kind: policy.Exec, Argv: []policy.Word{{Text: "git"}, {Text: "push"}}}})
	if d.Action != policy.Deny || d.Source != path+":4" || !strings.Contains(d.Reason, "releases are made by people") {
		t.Errorf("%+v", d)
	}
}

func TestAWorkspaceFileCanOnlyTighten(t *testing.T) {
	t.Parallel()
	o := options(t)
	if err := os.Mkdir(filepath.Join(o.Workspace, ".toold"), 0o700); err != nil {
		t.Fatal(err)
	}
	src := `version: 1
defaults: {bash: allow}
commands:
  - {id: open, decision: allow, run: ["**"]}
  - {id: closed, decision: deny, run: ["git log **"]}
`
	if err := os.WriteFile(filepath.Join(o.Workspace, WorkspacePolicy), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := LoadPolicy("", o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		program string
		want    policy.Action
	}{{"unheard-of", policy.Ask}, {"git", policy.Deny}} {
		d := p.Decide([]policy.Effect{{Kind: policy.Exec, Argv: []policy.Word{{Text: c.program}, {Text: "log"}}}})
		if d.Action != c.want {
			t.Errorf("%s: %v, want %v", c.program, d.Action, c.want)
		}
	}
	if len(p.Warnings()) != 1 || !strings.Contains(p.Warnings()[0], ".toold/policy.yaml:4: open has no effect") {
		t.Errorf("warnings: %q", p.Warnings())
	}
}

func TestBadPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ src, want string }{
		{"", "p.yaml:1:1: version is missing"},
		{"version: 2\n", `p.yaml:1:10: version: unknown version "2"`},
		{"version: 1\ncomands: []\n", `p.yaml:2:1: unknown key "comands": did you mean "commands"?`},
		{"version: 1\ndefaults: {bash: permit}\n", `p.yaml:2:18: defaults.bash: unknown decision "permit"`},
		{"version: 1\ndefaults: {unanalysable: allow}\n", "what cannot be analysed is never allowed"},
		{"version: 1\ncommands:\n  - {decision: deny, run: [a]}\n", "p.yaml:3:5: the rule has no id"},
		{"version: 1\ncommands:\n  - {id: x, run: [a]}\n", `p.yaml:3:5: rule "x" has no decision`},
		{"version: 1\ncommands:\n  - {id: x, decision: ask, run: [a]}\npaths:\n  - {id: x, decision: ask, match: [/a]}\n", `p.yaml:5:5: the id "x" is already used in line 3`},
		{"version: 1\ncommands:\n  - {id: x, decision: ask, run: [\"a; b\"]}\n", `p.yaml:3: rule "x": command pattern "a; b"`},
		{"version: 1\ncommands:\n  - {id: x, decision: ask, run: [\"a 'b\"]}\n", "unbalanced quotes"},
		{"version: 1\ncommands:\n  - {id: x, decision: ask, run: [\"a #b\"]}\n", `"#b" has no meaning`},
		{"version: 1\ncommands:\n  - {id: x, decision: ask, run: []}\n", "can never match"},
		{"version: 1\ncommands:\n  - {id: x, decision: allow, run: [\"go test **\"], examples: {match: [\"go test -exec a\"]}}\n", `example "go test -exec a": the rule should match it`},
		{"version: 1\npaths:\n  - {id: x, decision: allow, match: [\"src/**\"]}\n", "is relative"},
		{"version: 1\npaths:\n  - {id: x, decision: allow, match: [\"${worspace}/**\"]}\n", "unknown placeholder"},
		{"version: 1\npaths:\n  - {id: x, decision: allow, ops: [exec], match: [\"/a\"]}\n", "expected read or write"},
		{"version: 1\nnet:\n  - {id: x, decision: allow, hosts: [\"a*b\"]}\n", "expected a name, an address"},
		{"version: 1\npresets: [shell-all]\n", `unknown preset "shell-all"`},
		{"version: 1\nbuiltin: {disable: [nonsense]}\n", `no built-in rule has the id "nonsense"`},
		{"version: 1\nmode: unattended\n", "expected interactive or headless"},
	} {
		f, err := parsePolicy("p.yaml", []byte(c.src), policy.Ask)
		if err == nil {
			_, err = policy.Compile(policy.Options{Workspace: "/w", Home: "/h", Tmp: "/tmp"}, f)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.src, err, c.want)
		}
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add(CarefulPolicy())
	f.Add([]byte("version: 1\ncommands: [{id: a, decision: deny, run: ['{a,b} **']}]\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		file, err := parsePolicy("p.yaml", src, policy.Ask)
		if err != nil {
			return
		}
		p, err := policy.Compile(policy.Options{Workspace: "/w", Home: "/h", Tmp: "/tmp"}, file)
		if err != nil {
			return
		}
		if d := p.Decide([]policy.Effect{{Kind: policy.Opaque}}); d.Action == policy.Allow {
			t.Error("an unanalysable call is allowed")
		}
	})
}
