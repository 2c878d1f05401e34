package masks_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/rerun"
	"github.com/toold/toold/policy"
)

func TestAMaskStaysWhenACallClosesItsDirectory(t *testing.T) {
	t.Parallel()
	if rerun.AsUser(t) {
		return
	}
	p := newProject(t, policy.File{Paths: []policy.Rule{rule("env", policy.Deny, []policy.Kind{policy.Read}, "**/.env")}},
		".env", "a/b/.env", "b/c/secret", "d/copy", "e/.env")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(p.ws, name) }
	do(os.Mkdir(in("link"), 0o700))
	do(os.Symlink("../b/c/secret", in("link/.env")))
	do(os.Remove(in("d/copy")))
	do(os.Link(in("e/.env"), in("d/copy")))
	want := p.masked(p.policy)
	p.equal(want, ".env", "a/b/.env", "b/c/secret", "d/copy", "e/.env")
	other, err := policy.Compile(policy.Options{Workspace: p.ws, Home: "/nowhere", Tmp: "/tmp"},
		policy.File{Paths: []policy.Rule{rule("other", policy.Deny, []policy.Kind{policy.Read}, "**/.env")}})
	do(err)
	for _, closed := range []string{"a", "a/b", "b", "b/c", "d", "e", "link", "."} {
		call, err := p.Begin(t.Context(), p.policy, nil, true, func() {})
		do(err)
		do(os.Chmod(in(closed), 0))
		call.End()
		p.equal(p.masked(p.policy), want...)
		do(os.Chmod(in(closed), 0))
		p.equal(p.masked(other), want...)
	}
}

// Calls can open again what one has closed, and read another name of a masked file there.
func TestAnotherNameOfAMaskedFileIsFoundInAClosedDirectory(t *testing.T) {
	t.Parallel()
	if rerun.AsUser(t) {
		return
	}
	for _, mode := range []os.FileMode{0, 0o100, 0o400} {
		p := newProject(t, policy.File{Paths: []policy.Rule{rule("env", policy.Deny, []policy.Kind{policy.Read}, "**/.env")}}, ".env", "a/b/other")
		p.equal(p.masked(p.policy), ".env")
		in := func(name string) string { return filepath.Join(p.ws, name) }
		must.Do(t, errors.Join(os.Link(in(".env"), in("a/b/copy")), os.Chmod(in("a/b"), mode), os.Chmod(in("a"), mode)))
		p.equal(p.masked(p.policy), ".env", "a/b/copy")
	}
}
