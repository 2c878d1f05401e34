package masks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
)

// All directories above a name with a rule are examined for it: in a chain of thousands, no call would begin
// for minutes.
func TestACallEndsThatMakesAChainOfDirectoriesBelowARule(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{})
	ended := make(chan struct{}, 1)
	c, err := p.Begin(p.policy, nil, true, func() {
		select {
		case ended <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	const top = "new/.vscode" // two of the directories
	deepest := top + strings.Repeat("/e", masks.Deepest-2)
	p.chain(deepest + "/f/f")
	_, removed := c.End()
	select {
	case <-ended:
	default:
		t.Error("the call goes on")
	}
	if len(removed) == 0 || removed[0].Path != p.ws+"/"+deepest+"/f" || removed[0].Kept == "" {
		t.Errorf("removed are %+v", removed)
	}
	if left, err := os.ReadDir(p.ws + "/" + deepest); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	p.masked(p.policy) // the next call begins
}

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
	if err := os.MkdirAll(p.ws+"/"+name, 0o700); err != nil {
		p.t.Fatal(err)
	}
}
