package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// options are the places of a machine that does not exist.
func options(t *testing.T) policy.Options {
	t.Helper()
	return policy.Options{Workspace: t.TempDir(), Home: "/home/someone", Tmp: "/tmp"}
}

func TestTheBuiltInPolicyCompiles(t *testing.T) {
	t.Parallel()
	p := must.Get(LoadPolicy("", options(t)))(t)
	d := p.Decide([]policy.Effect{{Kind: policy.Exec, Argv: []policy.Word{{Text: "curl"}, {Text: "example.org"}}}})
	if d.Action != policy.Ask || d.Rule != "defaults.bash" || d.Source != "careful.yaml (built-in):15" {
		t.Errorf("an unknown program: %+v", d)
	}
}

func TestARuleIsNamedWithItsFileAndLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	src := "version: 1\ndefaults: {bash: allow}\ncommands:\n  - id: no-push\n    decision: deny\n    run: [\"git push **\"]\n    reason: releases are made by people\n"
	must.Do(t, os.WriteFile(path, []byte(src), 0o600))
	p := must.Get(LoadPolicy(path, options(t)))(t)
	d := p.Decide([]policy.Effect{{Kind: policy.Exec, Argv: []policy.Word{{Text: "git"}, {Text: "push"}}}})
	if d.Action != policy.Deny || d.Source != path+":4" || !strings.Contains(d.Reason, "releases are made by people") {
		t.Errorf("%+v", d)
	}
}

func TestAWorkspaceFileCanOnlyTighten(t *testing.T) {
	t.Parallel()
	o := options(t)
	must.Do(t, os.Mkdir(filepath.Join(o.Workspace, ".toold"), 0o700))
	src := `version: 1
defaults: {bash: allow}
commands:
  - {id: open, decision: allow, run: ["**"]}
  - {id: closed, decision: deny, run: ["git log **"]}
`
	must.Do(t, os.WriteFile(filepath.Join(o.Workspace, WorkspacePolicy), []byte(src), 0o600))
	p := must.Get(LoadPolicy("", o))(t)
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
	archive := must.Get(txtar.ParseFile("testdata/bad-policies.txtar"))(t)
	o := policy.Options{Workspace: t.TempDir(), Home: "/h", Tmp: "/tmp"}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		file, want := archive.Files[i], archive.Files[i+1]
		t.Run(file.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.yaml")
			must.Do(t, os.WriteFile(path, file.Data, 0o600))
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
			if withPositions(err, []*layer{&file}) == nil {
				t.Error("the faults were lost")
			}
			return
		}
		if d := p.Decide([]policy.Effect{{Kind: policy.Opaque}}); d.Action == policy.Allow {
			t.Error("an unanalysable call is allowed")
		}
	})
}

// writePolicies writes policy files into a new directory and returns the first's path.
func writePolicies(t *testing.T, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		must.Do(t, os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".yaml"), []byte(text), 0o600))
	}
	return filepath.Join(dir, "a.yaml")
}

func TestAPolicyNamesFilesForClients(t *testing.T) {
	t.Parallel()
	path := writePolicies(t, "version: 1\nclients:\n  - match: {client: cloud}\n    policy: b.yaml\n",
		"version: 1\ncommands:\n  - {id: no-push, decision: deny, run: [\"git push **\"]}\n")
	p := must.Get(LoadPolicy(path, options(t)))(t)
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
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte("version: 1\nclients:\n  - {match: {client: a}, policy: b.yaml}\n"), 0o600))
	if _, err := LoadPolicy("", o); err == nil || !strings.Contains(err.Error(), "holds for every client") {
		t.Errorf("%v", err)
	}
}

func TestAPolicyThatIsAPipeIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	o := options(t)
	pipe := filepath.Join(o.Workspace, WorkspacePolicy)
	must.Do(t, os.MkdirAll(filepath.Dir(pipe), 0o700))
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	for _, user := range []string{"", pipe} {
		if _, err := LoadPolicy(user, o); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("policy %q: got %v", user, err)
		}
	}
}

func TestAPolicyThatNeverEndsIsRefused(t *testing.T) {
	t.Parallel()
	o := options(t)
	path := filepath.Join(o.Workspace, "huge.yaml")
	f := must.Get(os.Create(path))(t)
	if err := f.Truncate(1 << 40); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	f.Close()
	if _, err := LoadPolicy(path, o); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
}
