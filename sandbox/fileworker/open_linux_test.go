package fileworker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

func TestPipesAndSocketsAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(nil)
		pipe, socket := filepath.Join(root, "pipe"), filepath.Join(root, "socket")
		must.Do(t, unix.Mkfifo(pipe, 0o600))
		must.Do(t, unix.Mknod(socket, unix.S_IFSOCK|0o600, 0))
		for path, want := range map[string]string{pipe: "a named pipe", socket: "a socket"} {
			if _, err := a.open(path); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", path, err, want)
			}
		}
	})
}

func TestReplaceFileKeepsExtendedAttributesAndDropsSetuid(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(map[string]string{"f": "old"})
		path := filepath.Join(root, "f")
		if err := unix.Setxattr(path, "user.note", []byte("kept"), 0); err != nil {
			t.Skipf("no extended attributes here: %v", err)
		}
		must.Do(t, unix.Chmod(path, 0o4755))
		must.Do(t, a.replace(path, Replacement{Data: []byte("new"), Old: a.must(path)}))
		value := make([]byte, 10)
		n, err := unix.Getxattr(path, "user.note", value)
		if err != nil || string(value[:n]) != "kept" {
			t.Errorf("attribute %q, %v", value[:n], err)
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil || st.Mode&0o7777 != 0o755 {
			t.Errorf("mode %o, %v; setuid must not pass to new content", st.Mode, err)
		}
	})
}

func TestAReadOnlyFileIsNotReplaced(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		if os.Geteuid() == 0 {
			t.Skip("root may write every file")
		}
		root := a.tree(map[string]string{"f": "old"})
		path := filepath.Join(root, "f")
		must.Do(t, os.Chmod(path, 0o444))
		if err := a.replace(path, Replacement{Data: []byte("new"), Old: a.must(path)}); err == nil {
			t.Error("replaced")
		}
	})
}

func TestOwnerIsKept(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can own files for others")
	}
	root := must.Tree(t, map[string]string{"f": "old"})
	path := filepath.Join(root, "f")
	if err := os.Chown(path, 12345, 54321); err != nil {
		t.Skipf("cannot change owners here: %v", err)
	}
	must.Do(t, replaceFile(path, Replacement{Data: []byte("new"), Old: open(t, path)}))
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Uid != 12345 || st.Gid != 54321 {
		t.Errorf("owner %d:%d, %v", st.Uid, st.Gid, err)
	}
}
