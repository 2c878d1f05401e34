package masks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
)

// What was there before stays, and is one mask.
func TestACallBeginsBesideAChainOfDirectoriesBelowARule(t *testing.T) {
	t.Parallel()
	before := newProject(t, policy.File{}, "old/.vscode/tasks.json")
	before.chain("old/.vscode" + strings.Repeat("/e", 1500))
	tracker, watcher, err := masks.New(protect.Options{Roots: []string{before.ws}, Quarantine: filepath.Join(t.TempDir(), "q")}, before.policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Close)
	p := project{t, before.ws, before.policy, tracker}
	p.equal(p.masked(p.policy), "+old/.vscode")
}

func TestANameBesideAMaskedDirectoryIsMaskedItself(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{Paths: []policy.Rule{
		rule("tree", policy.Deny, nil, "${workspace}/a/**"), rule("names", policy.Deny, nil, "**/a-b", "**/a.b"),
	}}, "a/x", "a/d/y", "a-b", "a.b", "a/a-b", "a0/a.b")
	p.equal(p.masked(p.policy), "a", "a-b", "a.b", "a0/a.b")
}

func (p project) chain(name string) {
	p.t.Helper()
	must.Do(p.t, os.MkdirAll(p.ws+"/"+name, 0o700))
}
