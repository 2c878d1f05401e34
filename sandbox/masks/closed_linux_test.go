package masks_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/policy"
)

// asUser runs a test again as an ordinary user, if it runs as root, whom no mode of a directory stops.
// It reports whether it did.
func asUser(t *testing.T) (ran bool) {
	t.Helper()
	if os.Getuid() != 0 {
		return false
	}
	const user = 65534
	dir, err := os.MkdirTemp("/tmp", "user")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.ReadFile("/proc/self/exe")
	if err := errors.Join(err, os.WriteFile(dir+"/test", self, 0o755), os.Chown(dir, user, user)); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), dir+"/test", "-test.v", "-test.run=^"+t.Name()+"$")
	c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
		t.Errorf("%v: %s", err, out)
	}
	return true
}

func TestAMaskStaysWhenACallClosesItsDirectory(t *testing.T) {
	t.Parallel()
	if asUser(t) {
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
		call, err := p.Begin(p.policy, nil, true, func() {})
		do(err)
		do(os.Chmod(in(closed), 0))
		call.End()
		p.equal(p.masked(p.policy), want...)
		do(os.Chmod(in(closed), 0))
		p.equal(p.masked(other), want...)
	}
}
