package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/policy"
)

// writePolicies writes policy files into a new folder and returns the first's path.
func writePolicies(t *testing.T, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "a.yaml")
}

func TestAPolicyNamesFilesForClients(t *testing.T) {
	t.Parallel()
	path := writePolicies(t, "version: 1\nclients:\n  - match: {client: cloud}\n    policy: b.yaml\n",
		"version: 1\ncommands:\n  - {id: no-push, decision: deny, run: [\"git push **\"]}\n")
	p, err := LoadPolicy(path, options(t))
	if err != nil {
		t.Fatal(err)
	}
	push := []policy.Effect{{Kind: policy.Exec, Argv: []policy.Word{{Text: "git"}, {Text: "push"}}}}
	second := filepath.Join(filepath.Dir(path), "b.yaml")
	if d := p.For("cloud", "").Decide(push); d.Action != policy.Deny || d.Source != second+":3" {
		t.Errorf("its client: %+v", d)
	}
	if d := p.For("local", "").Decide(push); d.Action != policy.Ask {
		t.Errorf("another client: %+v", d)
	}
	if d := p.Decide([]policy.Effect{{Kind: policy.Write, Path: second, Canonical: second}}); d.Rule != "builtin:toold" {
		t.Errorf("the clients' file is not protected: %+v", d)
	}
	if diff := cmp.Diff([]string{path, second}, PolicyFiles(path)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestFaultsInClientsAreShownWhereTheyStand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ user, second, want string }{
		{"clients:\n  - {match: {client: a}}", "", "a.yaml:3:5: clients: policy names no file"},
		{"clients:\n  - {policy: b.yaml}", "", "a.yaml:3:5: clients: match names neither"},
		{"clients:\n  - {match: {client: a}, policy: none.yaml}", "", "a.yaml:3:5: cannot read the clients' policy"},
		{"clients:\n  - {match: {client: a}, policy: b.yaml}", "comands: []", "b.yaml:2:1: unknown key"},
		{"clients:\n  - {match: {client: a}, policy: b.yaml}", "commands:\n  - {id: x, decision: deny, run: [\"a | b\"]}", "b.yaml:3:35: rule \"x\": command pattern"},
		{"clients:\n  - {match: {client: a}, policy: b.yaml}", "clients:\n  - {match: {client: a}, policy: a.yaml}", "b.yaml:3:5: clients: a clients' policy cannot name others"},
		{"clients:\n  - {match: {clint: a}, policy: b.yaml}", "", "did you mean \"client\""},
	} {
		path := writePolicies(t, "version: 1\n"+c.user+"\n", "version: 1\n"+c.second+"\n")
		if _, err := LoadPolicy(path, options(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.user, err, c.want)
		}
	}
}

func TestTheWorkspaceCannotTellClientsApart(t *testing.T) {
	t.Parallel()
	o := options(t)
	path := filepath.Join(o.Workspace, WorkspacePolicy)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("version: 1\nclients:\n  - {match: {client: a}, policy: b.yaml}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadPolicy("", o); err == nil || !strings.Contains(err.Error(), "holds for every client") {
		t.Errorf("%v", err)
	}
}
