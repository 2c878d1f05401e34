package toold_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/files"
)

// example is one policy of docs/policy.md and the decisions that it is said to
// lead to.
type example struct {
	heading, policy string
	calls           [][2]string
}

var (
	docsPolicy = regexp.MustCompile("(?s)```policy\n(.*?)```\n(.*?)(?:\n#|```|$)")
	docsCall   = regexp.MustCompile("(?m)^\\| `(.+)` \\| (allow|ask|deny) \\|$")
)

// examples reads docs/policy.md: a block of policy, then the table below it.
func examples(t *testing.T) []example {
	t.Helper()
	text, err := os.ReadFile("docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []example
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, _, _ := strings.Cut(section, "\n")
		for _, m := range docsPolicy.FindAllStringSubmatch(section, -1) {
			e := example{heading: heading, policy: m[1]}
			for _, c := range docsCall.FindAllStringSubmatch(m[2], -1) {
				e.calls = append(e.calls, [2]string{strings.ReplaceAll(c[1], `\|`, "|"), c[2]})
			}
			all = append(all, e)
		}
	}
	return all
}

// docsWorkspace is the tree that the examples speak of, and a folder beside it.
func docsWorkspace(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(base, "ws")
	for _, dir := range []string{ws + "/src", ws + "/generated", ws + "/build", ws + "/secrets", ws + "/e", ws + "/.git", base + "/away"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{ws + "/a.txt", ws + "/secrets/key", ws + "/.env", ws + "/src/main.go", ws + "/generated/a.txt", ws + "/.git/HEAD", base + "/away/file"} {
		if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link-to-env": ".env", "outside": "../away"} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	return ws
}

// docsTools are the tools of a daemon in the workspace.
func docsTools(t *testing.T, ws string) *tools.Registry {
	t.Helper()
	profile := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws}
	all := append(files.New(files.Options{Workspace: ws, Home: "/home/u", Profile: profile}), bash.New(bash.Options{
		Workspace: ws, Profile: profile, Env: []string{"HOME=/home/u", "PATH=/usr/bin:/bin", "LANG=C.UTF-8"},
	}))
	registry, err := tools.NewRegistry(all...)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// judged is the decision on a call as the documents write it: a command, or a
// file tool and a path.
func judged(t *testing.T, registry *tools.Registry, p *policy.Policy, call string) policy.Decision {
	t.Helper()
	name, args := "bash", map[string]string{"command": call}
	if tool, path, ok := strings.Cut(call, " "); ok && strings.HasSuffix(tool, "_file") {
		name, args = tool, map[string]string{"file_path": path}
		if tool == "write_file" {
			args["content"] = "x\n"
		}
	}
	tool, _, ok := registry.Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := tool.Build(text)
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	return p.Decide(inv.Effects())
}

// loadText compiles the text of a policy for a workspace.
func loadText(t *testing.T, ws, text string) *policy.Policy {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := config.LoadPolicy(path, policy.Options{Workspace: ws, Home: "/home/u", Tmp: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEveryExampleInThePolicyDocumentIsTrue(t *testing.T) {
	t.Parallel()
	ws := docsWorkspace(t)
	registry := docsTools(t, ws)
	all := examples(t)
	if len(all) < 8 {
		t.Fatalf("only %d examples were found", len(all))
	}
	for _, e := range all {
		p := loadText(t, ws, e.policy)
		if len(e.calls) == 0 {
			t.Errorf("%s: no decisions below the policy", e.heading)
		}
		for _, c := range e.calls {
			if d := judged(t, registry, p, c[0]); d.Action.String() != c[1] {
				t.Errorf("%s: %s: %v, the document says %s (%s)", e.heading, c[0], d.Action, c[1], d.Reason)
			}
		}
	}
}

// yamlBlocks returns the blocks of YAML in a document.
func yamlBlocks(t *testing.T, name string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, rest := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		blocks = append(blocks, block)
	}
	return blocks
}

func TestThePolicyOfTheReadmeDoesWhatItSeemsTo(t *testing.T) {
	t.Parallel()
	ws := docsWorkspace(t)
	registry := docsTools(t, ws)
	blocks := yamlBlocks(t, "README.md")
	if len(blocks) != 1 {
		t.Fatalf("the README has %d blocks of YAML, and this test knows one", len(blocks))
	}
	p := loadText(t, ws, blocks[0])
	for call, want := range map[string]string{
		"go test ./... | tail -3": "allow", "go run .": "ask", "cat a.txt": "allow", "cat .env": "deny", "read_file .env": "deny", "write_file src/x.go": "allow",
		"bash -c 'git push'": "deny", "npm publish": "deny", "cat /etc/passwd": "ask", "curl https://example.org": "ask",
	} {
		if d := judged(t, registry, p, call); d.Action.String() != want {
			t.Errorf("%s: %v by %s, want %s", call, d.Action, d.Rule, want)
		}
	}
}

// The other piece of YAML in docs/policy.md names files for clients.
func TestTheDocumentsFilesForClientsAreFollowed(t *testing.T) {
	t.Parallel()
	ws := docsWorkspace(t)
	registry := docsTools(t, ws)
	blocks := yamlBlocks(t, "docs/policy.md")
	if len(blocks) != 1 {
		t.Fatalf("docs/policy.md has %d blocks of YAML, and this test knows one", len(blocks))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"policy.yaml":  "version: 1\npresets: [shell-readonly]\npaths:\n  - {id: here, decision: allow, match: [\"${workspace}/**\"]}\n" + blocks[0],
		"cloud.yaml":   "version: 1\ncommands:\n  - {id: no-ls, decision: deny, run: [\"ls **\"]}\n",
		"nightly.yaml": "version: 1\ncommands:\n  - {id: no-cat, decision: deny, run: [\"cat **\"]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := config.LoadPolicy(filepath.Join(dir, "policy.yaml"), policy.Options{Workspace: ws, Home: "/home/u", Tmp: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ client, agent, call, want string }{
		{"other", "x", "ls; cat a.txt", "allow"},
		{"cloud-agent", "x", "ls", "deny"},
		{"cloud-agent", "x", "cat a.txt", "allow"},
		{"other", "nightly-7", "cat a.txt", "deny"},
	} {
		if d := judged(t, registry, all.For(c.client, c.agent), c.call); d.Action.String() != c.want {
			t.Errorf("%s of %s %s: %v by %s, want %s", c.call, c.client, c.agent, d.Action, d.Rule, c.want)
		}
	}
}

// One rule about a path decides alike, however the call spells the path and
// whether a command or a file tool touches it.
func TestOneRuleBindsCommandsAndFileToolsAlike(t *testing.T) {
	t.Parallel()
	ws := docsWorkspace(t)
	registry := docsTools(t, ws)
	p := loadText(t, ws, `version: 1
presets: [shell-readonly, shell-workspace]
paths:
  - {id: workspace, decision: allow, match: ["${workspace}/**"]}
  - {id: dotenv, decision: deny, match: ["${workspace}/.env"]}
`)
	paths := map[string]string{
		"a.txt": "allow", ".env": "deny", "./.env": "deny", "src/../.env": "deny", "link-to-env": "deny", ws + "/.env": "deny",
		"outside/file": "ask", "outside/new": "ask", "../away/file": "ask", "outside/../ws/.env": "deny", "/proc/self/root" + ws + "/a.txt": "deny",
		"new.txt": "allow", "src/new": "allow", "/etc/hostname": "ask", "~/x": "ask", "~/.ssh/id_rsa": "deny",
	}
	for path, want := range paths {
		for _, call := range []string{"cat %s", "read_file %s", "cat < %s"} {
			if d := judged(t, registry, p, fmt.Sprintf(call, path)); d.Action.String() != want {
				t.Errorf("read with %q of %s: %v by %s, want %s", call, path, d.Action, d.Rule, want)
			}
		}
		if path == "/etc/hostname" {
			want = "deny" // a built-in rule
		}
		for _, call := range []string{"echo x > %s", "write_file %s", "tee %s", "echo x >> %s"} {
			if d := judged(t, registry, p, fmt.Sprintf(call, path)); d.Action.String() != want {
				t.Errorf("write with %q of %s: %v by %s, want %s", call, path, d.Action, d.Rule, want)
			}
		}
	}
}

// The policies of the document are those that are written for whoever asks for one.
func TestThePoliciesOfLanguagesAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	for heading, name := range map[string]string{"Go": "go", "Node": "node", "Python": "python"} {
		text, err := config.StarterPolicy(name)
		if err != nil {
			t.Fatal(err)
		}
		_, rules, _ := strings.Cut(string(text), "\n")
		found := false
		for _, e := range examples(t) {
			found = found || strings.HasPrefix(e.heading, "A policy for a "+heading+" ") && e.policy == rules
		}
		if !found {
			t.Errorf("the policy of the document for %s is not %s.yaml", heading, name)
		}
	}
}

var docsBounded = regexp.MustCompile("(?m)^\\| `(.+)` \\| (allow|ask|deny) \\| (allow|ask|deny) \\|$")

// The built-in policy decides what the document says, where the sandbox bounds a call and
// where not.
func TestTheBuiltInPolicyDecidesAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	ws := docsWorkspace(t)
	registry := docsTools(t, ws)
	text, err := os.ReadFile("docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	p, err := config.LoadPolicy("", policy.Options{Workspace: ws, Home: "/home/u", Tmp: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	rows := docsBounded.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 20 {
		t.Fatalf("only %d rows were found", len(rows))
	}
	for _, r := range rows {
		call := strings.ReplaceAll(r[1], `\|`, "|")
		for held, want := range map[policy.Confinement]string{{View: true, Judged: true, Offline: true, Masked: true}: r[2], {}: r[3]} {
			if d := judged(t, registry, p.Within(held), call); d.Action.String() != want {
				t.Errorf("%s within %+v: %v by %s, the document says %s", call, held, d.Action, d.Rule, want)
			}
		}
	}
}
