package masks_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

// A link that a call puts where a rule expects a directory would have the user write what the
// rule is about under a path of which it says nothing.
func TestALinkOnTheWayToWhatARuleIsAboutIsRemoved(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{Paths: []policy.Rule{
		rule("exact", policy.Deny, nil, "${workspace}/conf/deep/key"), rule("named", policy.Deny, nil, "**/secrets/*.pem"), rule("dotenv", policy.Ask, nil, "**/.env"),
	}}, "mine/deep/x", "old/deep/x", "swapped/deep/x", "file")
	p.link("mine", "users/secrets")
	c, err := p.Begin(p.policy, nil, true, func() {})
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
	c, err := p.Begin(p.policy, nil, true, func() {})
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
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(p.ws, to), path); err != nil {
		p.t.Fatal(err)
	}
}
