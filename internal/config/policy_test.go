package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

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
	if d.Action != policy.Ask || d.Rule != "defaults.bash" || d.Source != "careful.yaml (built-in):15" {
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
	if len(p.Warnings()) != 2 || !strings.Contains(p.Warnings()[1], ".toold/policy.yaml:4: rule open has no effect") {
		t.Errorf("warnings: %q", p.Warnings())
	}
}

// The archive holds wrong files, each followed by what is said of it.
func TestBadPoliciesAreRefused(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/bad-policies.txtar")
	if err != nil {
		t.Fatal(err)
	}
	o := policy.Options{Workspace: t.TempDir(), Home: "/h", Tmp: "/tmp"}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		file, want := archive.Files[i], archive.Files[i+1]
		t.Run(file.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.yaml")
			if err := os.WriteFile(path, file.Data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadPolicy(path, o)
			if err == nil {
				t.Fatal("it was accepted")
			}
			got := strings.ReplaceAll(err.Error(), path, "p.yaml") + "\n"
			if got != string(want.Data) {
				t.Errorf("got:\n%swant:\n%s", got, want.Data)
			}
		})
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add(careful)
	f.Add([]byte("version: 1\ncommands: [{id: a, decision: deny, run: ['{a,b} **']}]\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		file, err := parsePolicy("p.yaml", src, policy.Ask, "")
		if err != nil {
			return
		}
		p, err := policy.Compile(policy.Options{Workspace: "/w", Home: "/h", Tmp: "/tmp"}, file.file)
		if err != nil {
			if placed(err, []*layer{&file}) == nil {
				t.Error("the faults were lost")
			}
			return
		}
		if d := p.Decide([]policy.Effect{{Kind: policy.Opaque}}); d.Action == policy.Allow {
			t.Error("an unanalysable call is allowed")
		}
	})
}
