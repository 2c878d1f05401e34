package helper

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
)

// tree is a detached copy of a part of the host's mounts, taken before the view is built.
type tree struct {
	fd   int
	path string // mount point
	dir  bool
}

// locate opens path, which must be canonical, without following links: a link there was created after the path was
// judged, perhaps by an earlier call.
func locate(path string) (int, error) { return locateAt(unix.AT_FDCWD, path) }

func locateAt(dir int, path string) (int, error) {
	return unix.Openat2(dir, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

func take(path string, recursive bool) (tree, error) { return takeAt(unix.AT_FDCWD, path, recursive) }

func takeAt(dir int, path string, recursive bool) (tree, error) {
	at, err := locateAt(dir, path)
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return tree{}, err
	}
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(at, "", flags)
	return tree{fd: fd, path: path, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}, err
}

func takeLocked(path string) (tree, error) {
	t, err := take(path, false)
	if err != nil {
		return tree{}, err
	}
	if err := setAttr(t.fd, "", unix.AT_EMPTY_PATH, attrLocked); err != nil {
		unix.Close(t.fd)
		return tree{}, err
	}
	return t, nil
}

// attach mounts the tree at its path, which it creates in a private directory.
func (t tree) attach() error {
	defer unix.Close(t.fd)
	if Covered(t.path) {
		if err := t.makeMountPoint(); err != nil {
			return stage("make a place for "+t.path, err)
		}
	}
	to, err := locate(t.path)
	if err != nil {
		return stage("find "+t.path, err)
	}
	defer unix.Close(to)
	err = unix.MoveMount(t.fd, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	return stage("mount "+t.path, err)
}

func (t tree) makeMountPoint() error {
	if t.dir {
		return os.MkdirAll(t.path, 0o755)
	}
	if err := os.MkdirAll(paths.Above(t.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(t.path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
