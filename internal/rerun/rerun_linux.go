// Package rerun runs tests again under other conditions. It is for tests only.
package rerun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// AsUser runs a test again as an ordinary user if it runs as root, who can open every directory whatever its mode. It
// reports whether it did.
func AsUser(t *testing.T) (ran bool) {
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
	if err := os.Chown(dir, user, user); err != nil {
		t.Fatal(err)
	}
	// Another process writes the copy: a file that this process has open for writing may be inherited by a command
	// that starts meanwhile, and then cannot be run.
	self := "/proc/" + strconv.Itoa(os.Getpid()) + "/exe"
	if out, err := exec.CommandContext(t.Context(), "cp", self, dir+"/test").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(dir+"/test", 0o755); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), dir+"/test", "-test.v", "-test.run=^"+t.Name()+"$")
	c.Dir, c.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	again(t, c)
	return true
}

// Mounting runs a test again in namespaces where it may mount, on the directory that it returns then. Otherwise it
// returns "".
func Mounting(t *testing.T) (dir string) {
	t.Helper()
	const variable = "RERUN_MOUNTING"
	if dir = os.Getenv(variable); dir != "" {
		return dir
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), "unshare", "-rm", "mount", "-t", "tmpfs", "none", dir).Run(); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	c := exec.CommandContext(t.Context(), "unshare", "-rm", os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), variable+"="+dir)
	again(t, c)
	return ""
}

func again(t *testing.T, c *exec.Cmd) {
	t.Helper()
	out, err := c.CombinedOutput()
	switch {
	case strings.Contains(string(out), "SKIP: "+t.Name()):
		t.Skipf("%s", out)
	case err != nil || !strings.Contains(string(out), "PASS: "+t.Name()):
		t.Errorf("%v: %s", err, out)
	}
}
