package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/sandbox"
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
	out, err := c.CombinedOutput()
	switch {
	case strings.Contains(string(out), "SKIP: "+t.Name()):
		t.Skipf("%s", out)
	case err != nil || !strings.Contains(string(out), "PASS: "+t.Name()):
		t.Errorf("%v: %s", err, out)
	}
	return true
}

func TestAHiddenFileStaysHiddenInADirectoryThatACallHasClosed(t *testing.T) {
	if asUser(t) {
		return
	}
	for _, launcher := range []string{"", "bwrap"} {
		ws := folder(t)
		secret := filepath.Join(ws, "a/b/secret")
		files(t, map[string]string{secret: "content", filepath.Join(ws, "a/b/dir/in"): "content", filepath.Join(ws, "a/other"): "other"})
		p := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws, Hide: []string{secret, filepath.Join(ws, "a/b/dir")}}
		if launcher == "bwrap" {
			p = tierBwrap(t, p)
		} else {
			p.Hide = append(p.Hide, filepath.Join(ws, "a/b/dir/in"))
		}
		chosen, _, err := sandbox.Choose(t.Context(), p, sandbox.TierA)
		if err != nil {
			t.Skip(err)
		}
		for _, closed := range []string{"a/b", "a", "."} {
			runTier(t, chosen, "chmod 0 "+closed)
			if got, _ := runTier(t, chosen, "chmod 700 . a a/b; cat a/b/secret a/b/dir/in"); strings.Contains(got, "content") {
				t.Errorf("%q: %s was closed, and the call reads the hidden file in it: %q", launcher, closed, got)
			}
			for _, dir := range []string{"", "a", "a/b"} {
				if err := os.Chmod(filepath.Join(ws, dir), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if got, _ := runTier(t, chosen, "cat a/other"); got != "other" {
				t.Errorf("%q: a call after %s was closed prints %q", launcher, closed, got)
			}
		}
	}
}
