package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
)

// maskedBy compiles a policy for a workspace, of rules that deny files of such names.
func maskedBy(t *testing.T, ws string, patterns ...string) *policy.Policy {
	t.Helper()
	f := policy.File{Defaults: policy.Defaults{Read: policy.Allow, Write: policy.Allow}}
	if len(patterns) > 0 {
		f.Paths = []policy.Rule{{ID: "kept", Action: policy.Deny, Paths: patterns}}
	}
	p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: "/nowhere", Tmp: "/tmp"}, f))(t)
	return p
}

// The worker that opens files is one for many calls; each has the masks of its own policy.
func TestTheFileWorkerFollowsAChangedPolicy(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, func(o *Options) {
		for _, name := range []string{"a.txt", "b.key"} {
			must.Do(t, os.WriteFile(filepath.Join(o.Workspace, name), []byte("needle in "+name+"\n"), 0o600))
		}
		tracker, watcher, err := masks.New(protect.Options{Roots: []string{o.Workspace}, Quarantine: t.TempDir()}, maskedBy(t, o.Workspace, "**/*.key"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(watcher.Close)
		o.Masks, o.Protect = tracker, watcher
	})
	read := func(p *policy.Policy, name string) tools.Result {
		return w.must("read_file", args{"file_path": name}).Execute(t.Context(), tools.IO{Policy: p})
	}
	write := func(p *policy.Policy, name string) tools.Result {
		return w.must("write_file", args{"file_path": name, "content": "needle in " + name + "\n"}).Execute(t.Context(), tools.IO{Policy: p})
	}
	keys, texts, none := maskedBy(t, w.root, "**/*.key"), maskedBy(t, w.root, "**/*.txt"), maskedBy(t, w.root)
	for round, step := range []struct {
		policy *policy.Policy
		kept   string
	}{{keys, "b.key"}, {texts, "a.txt"}, {none, ""}, {keys, "b.key"}, {keys, "b.key"}, {texts, "a.txt"}} {
		for _, name := range []string{"a.txt", "b.key"} {
			for _, r := range []tools.Result{read(step.policy, name), write(step.policy, name)} {
				if r.IsError != (name == step.kept && r.Denials != nil) || (name == step.kept) != strings.Contains(r.Text, "rule kept denies it") {
					t.Errorf("round %d: %s: %+v", round, name, r)
				}
			}
		}
	}
}
