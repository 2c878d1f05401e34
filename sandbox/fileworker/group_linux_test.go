package fileworker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/must"
)

// The group of a file is given up only where nobody gains by that, and nobody loses more than writing.
func TestAFileWhoseGroupCannotBeKeptIsReplaced(t *testing.T) {
	t.Parallel()
	const id = 4242
	if dir := os.Getenv("GROUP_TEST_DIR"); dir != "" {
		replaceAll(t, dir)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can make a file with a group that its owner is not in")
	}
	dir, err := os.MkdirTemp("/tmp", "group")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	want := map[string]string{
		"0644": "0644", "0664": "0644", "0666": "0666", "0600": "0600", "0775": "0755", "2755": "0755", "0620": "0600",
		"0640": "group", "0660": "group", "0604": "group", "0750": "group", "0646": "group",
	}
	for mode := range want {
		path := filepath.Join(dir, mode)
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("sh", "-c", "chown 4242:1 $1; chmod $0 $1", mode, path).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	if err := os.Chown(dir, id, id); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "test")
	must.Program(t, program, must.Get(os.ReadFile("/proc/self/exe"))(t))
	cmd := exec.Command(program, "-test.run=^TestAFileWhoseGroupCannotBeKeptIsReplaced$", "-test.v")
	cmd.Env, cmd.Dir = append(os.Environ(), "GROUP_TEST_DIR="+dir), dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for mode, want := range want {
		if got := "MODE " + mode + " " + want; !strings.Contains(string(out), got) {
			t.Errorf("want %q in %s", got, out)
		}
	}
}

func replaceAll(t *testing.T, dir string) {
	t.Helper()
	modes, err := filepath.Glob(dir + "/[0-9]*")
	if err != nil || len(modes) == 0 {
		t.Fatal(err, modes)
	}
	for _, path := range modes {
		err := replaceFile(path, Replacement{Data: []byte("new"), Old: open(t, path)})
		info, serr := os.Stat(path)
		switch {
		case serr != nil:
			t.Error(serr)
		case err == nil && content(t, path) == "new":
			t.Logf("MODE %s 0%o", filepath.Base(path), info.Mode().Perm())
		case err != nil && strings.Contains(err.Error(), "group (gid 1)") && !strings.Contains(err.Error(), "immutable") && content(t, path) == "old":
			t.Logf("MODE %s group", filepath.Base(path))
		default:
			t.Error(path, err)
		}
	}
}
