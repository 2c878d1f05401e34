package masks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/internal/nofollow"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
)

// A link that a call puts where a rule expects a directory would have the user write what the
// rule is about under a path of which it says nothing.
func TestALinkOnTheWayToWhatARuleIsAboutIsRemoved(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{Paths: []policy.Rule{
		rule("exact", policy.Deny, nil, "${workspace}/conf/deep/key"), rule("named", policy.Deny, nil, "**/secrets/*.pem"), rule("dotenv", policy.Ask, nil, "**/.env"),
	}}, "mine/deep/x", "old/deep/x", "swapped/deep/x", "file")
	p.link("mine", "users/secrets")
	c, err := p.Begin(t.Context(), p.policy, nil, true, func() {})
	if err != nil {
		t.Fatal(err)
	}
	p.link("mine", "conf")
	p.link("missing", "old/secrets")
	p.link("mine", "other")
	p.link("file", "mine/secrets")
	_, removed := c.End()
	var got []string
	for _, i := range removed {
		if i.Err != nil {
			t.Error(i.Err)
		}
		got = append(got, strings.TrimPrefix(i.Path, p.ws+"/"))
	}
	slices.Sort(got)
	p.equal(got, "conf", "old/secrets")
	for name, stays := range map[string]bool{"conf": false, "old/secrets": false, "users/secrets": true, "other": true, "mine/secrets": true} {
		if _, err := os.Lstat(filepath.Join(p.ws, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// In the place of a directory it is the same.
func TestALinkInThePlaceOfADirectoryOnTheWayIsRemoved(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{Paths: []policy.Rule{rule("exact", policy.Deny, nil, "${workspace}/conf/deep/key")}}, "mine/x", "conf/deep/x")
	c, err := p.Begin(t.Context(), p.policy, nil, true, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p.ws+"/conf/deep", p.ws+"/away"); err != nil {
		t.Fatal(err)
	}
	p.link("mine", "conf/deep")
	if _, removed := c.End(); len(removed) != 1 || removed[0].Path != p.ws+"/conf/deep" {
		t.Errorf("removed are %v", removed)
	}
}

// link makes a link to a name of the workspace.
func (p project) link(to, name string) {
	p.t.Helper()
	path := filepath.Join(p.ws, name)
	must.Do(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(p.t, os.Symlink(filepath.Join(p.ws, to), path))
}

// What lies under the rules of another client, or of a policy that comes while a call runs, was not
// made by the call: no mask over it is lifted, and no link or FIFO of the user's is removed.
func TestACallMakesNothingThatWasThereBefore(t *testing.T) {
	t.Parallel()
	rules := []policy.Rule{
		rule("own", policy.Deny, nil, "**/*.key"), rule("way", policy.Deny, nil, "${workspace}/conf/deep/secret"), rule("tree", policy.Deny, nil, "${workspace}/many/**/x*"),
	}
	all := policy.File{Paths: []policy.Rule{rule("all", policy.Deny, nil, "**/*.pem")}}
	guests := all
	guests.Clients = []policy.Client{{Name: "guest", File: policy.File{Name: "guests", Paths: rules}}}
	both := policy.File{Paths: append(slices.Clone(all.Paths), rules...)}
	for name, before := range map[string]policy.File{"another client": guests, "a new policy": all} {
		p := newProject(t, before, "a.key", "b.key", "d/c.key", "m/e.key", "other/x", "public")
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		do(os.Link(p.ws+"/b.key", p.ws+"/mine"))
		do(unix.Mkfifo(p.ws+"/d/fifo.key", 0o600))
		do(os.MkdirAll(p.ws+"/conf", 0o700))
		p.link("other", "conf/deep")
		for i := range masks.Most + 10 {
			do(os.MkdirAll(fmt.Sprintf("%s/many/%d", p.ws, i), 0o700))
			do(os.WriteFile(fmt.Sprintf("%s/many/%d/x", p.ws, i), nil, 0o600))
			do(os.WriteFile(fmt.Sprintf("%s/many/%d/y", p.ws, i), nil, 0o600))
		}
		after, err := policy.Compile(policy.Options{Workspace: p.ws, Home: "/nowhere", Tmp: "/tmp"}, both)
		do(err)
		if name == "another client" {
			after = p.policy.For("guest", "")
		}
		for born := time.Now(); !nofollow.Stamp().After(born); {
			runtime.Gosched()
		}
		ended := false
		c, err := p.Begin(t.Context(), p.policy, nil, true, func() { ended = true })
		do(err)
		do(os.WriteFile(p.ws+"/made.key", []byte("x"), 0o600))
		do(os.Mkdir(p.ws+"/new", 0o700))
		do(os.WriteFile(p.ws+"/new/made.key", []byte("x"), 0o600))
		do(os.Link(p.ws+"/public", p.ws+"/new/link.key"))
		do(os.Rename(p.ws+"/m", p.ws+"/moved"))
		if err := p.Use(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		_, removed := c.End()
		var gone []string
		for _, i := range removed {
			gone = append(gone, strings.TrimPrefix(i.Path, p.ws+"/"))
		}
		p.equal(gone, "new/link.key")
		if ended {
			t.Errorf("%s ends the call", name)
		}
		set, err := p.Begin(t.Context(), after, nil, false, func() {})
		do(err)
		var got []string
		for _, m := range set.Masks().Hidden {
			got = append(got, strings.TrimPrefix(m.Path, p.ws+"/"))
		}
		set.End()
		for _, want := range []string{"a.key", "b.key", "mine", "d", "moved/e.key"} {
			under := func(path string) bool {
				return path == want || strings.HasPrefix(path, want+"/") || strings.HasPrefix(want, path+"/")
			}
			if !slices.ContainsFunc(got, under) {
				t.Errorf("%s: %s is not masked in %d", name, want, len(got))
			}
		}
	}
}

// What a call has made in one directory, and another moves to a name with a rule, counts as made by the second.
func TestWhatIsMovedBelowRulesWithItsDirectoryDoesNotStay(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{Paths: []policy.Rule{
		rule("secrets", policy.Deny, nil, "${workspace}/secrets/**"), rule("way", policy.Deny, nil, "${workspace}/conf/deep/secret"),
	}}, "other/x")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	first, err := p.Begin(t.Context(), p.policy, nil, true, func() {})
	do(err)
	do(os.Mkdir(p.ws+"/stage", 0o700))
	do(unix.Mkfifo(p.ws+"/stage/fifo", 0o600))
	do(os.Mkdir(p.ws+"/stage2", 0o700))
	p.link("../other", "stage2/deep")
	first.End()
	for born := time.Now(); !nofollow.Stamp().After(born); {
		runtime.Gosched()
	}
	second, err := p.Begin(t.Context(), p.policy, nil, true, func() {})
	do(err)
	do(os.Rename(p.ws+"/stage", p.ws+"/secrets"))
	do(os.Rename(p.ws+"/stage2", p.ws+"/conf"))
	_, removed := second.End()
	var gone []string
	for _, i := range removed {
		gone = append(gone, strings.TrimPrefix(i.Path, p.ws+"/"))
	}
	slices.Sort(gone)
	p.equal(gone, "conf/deep", "secrets/fifo")
}

// What the user had before the daemon began stays, also when its directory is moved below rules.
func TestWhatWasThereBeforeStaysWhenItsDirectoryIsMovedBelowRules(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{Paths: []policy.Rule{rule("secrets", policy.Deny, []policy.Kind{policy.Read}, "${workspace}/secrets/**")}}, "data/user")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.Link(p.ws+"/data/user", p.ws+"/data/copy"))
	for linked := time.Now(); !nofollow.Stamp().After(linked); {
		runtime.Gosched()
	}
	daemon, watcher, err := masks.New(protect.Options{Roots: []string{p.ws}, Quarantine: filepath.Join(t.TempDir(), "q")}, p.policy)
	do(err)
	t.Cleanup(watcher.Close)
	c, err := daemon.Begin(t.Context(), p.policy, nil, true, func() {})
	do(err)
	do(os.Rename(p.ws+"/data", p.ws+"/secrets"))
	if _, removed := c.End(); len(removed) > 0 {
		t.Errorf("it removes %v", removed)
	}
}
