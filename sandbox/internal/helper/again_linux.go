package helper

import (
	"bytes"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// A helper may hold several calls, one after the other (Spec.Again): what it costs to start
// a program and to make a network is paid once. Of a call nothing stays. Its processes are
// dead, which the helper, their init, has seen; its mounts, with /tmp and all that is private,
// are removed; and a helper whose call left something in the network or in System V IPC ends
// instead of holding another. (Landlock keeps calls from making POSIX message queues.)

// Directories of the base.
const (
	baseHost = "host" // the mounts of the machine, as they were when the helper began
	baseView = "view" // the view of the call
)

// base is the root of a helper that holds several calls. Each call's root is a copy of
// baseHost, mounted at baseView.
type base struct{ root int }

// newBase makes a file system with these directories the root of the mount namespace.
func newBase() (*base, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fs)
	if err := errors.Join(unix.FsconfigSetString(fs, "mode", "700"), unix.FsconfigSetString(fs, "size", "16k"), unix.FsconfigCreate(fs)); err != nil {
		return nil, err
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrQuiet)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{baseHost, baseView} {
		err = errors.Join(err, unix.Mkdirat(root, dir, 0o700))
	}
	return &base{root}, errors.Join(err,
		unix.MoveMount(root, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH),
		unix.Fchdir(root),
		unix.PivotRoot(".", baseHost))
}

// enter makes a fresh copy of the machine's mounts the root of this process.
func (b *base) enter() error {
	tree, err := unix.OpenTree(b.root, baseHost, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return errors.Join(
		unix.MoveMount(tree, "", b.root, baseView, unix.MOVE_MOUNT_F_EMPTY_PATH),
		unix.Fchdir(tree),
		unix.Chroot("."))
}

// leave unmounts the copy, and with it all that was mounted in it.
func (b *base) leave() error {
	return errors.Join(
		unix.Fchdir(b.root),
		unix.Chroot("."),
		unix.Unmount(baseView, unix.MNT_DETACH))
}

// usesNetwork reports whether the network has a socket of TCP or UDP, or a connection
// that waits for its end (TIME_WAIT), for which no process is needed.
func usesNetwork() bool {
	const of = "/proc/self/net/"
	text, err := os.ReadFile(of + "sockstat")
	text6, err6 := os.ReadFile(of + "sockstat6")
	if err != nil || err6 != nil && !errors.Is(err6, os.ErrNotExist) {
		return true
	}
	for line := range strings.Lines(string(append(text, text6...))) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "sockets:" || strings.HasPrefix(f[0], "FRAG") {
			continue
		}
		for i := 1; i+1 < len(f); i += 2 {
			counts := f[i] == "inuse" || f[i] == "tw"
			if counts && f[i+1] != "0" {
				return true
			}
		}
	}
	return false
}

// usesIPC reports whether a segment, a set of semaphores or a queue of System V exists:
// each is a line after the head (sysvipc(7)).
func usesIPC() bool {
	for _, kind := range []string{"shm", "sem", "msg"} {
		b, err := os.ReadFile("/proc/sysvipc/" + kind)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil || bytes.Count(b, []byte("\n")) > 1 {
			return true
		}
	}
	return false
}

// keepCapabilities leaves every thread those with which views are made and
// taken away. The threads from which calls start give up these too. To reach every thread
// package psx may need the /proc of the namespace.
func keepCapabilities() error {
	if err := unix.Mount("proc", "/proc", "proc", flagsPlain|unix.MS_NOEXEC, ""); err != nil {
		return stage("mount /proc", err)
	}
	keep := uint32(1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_SETPCAP)
	if err := setCapabilities(psx.Syscall3, keep); err != nil {
		return err
	}
	return unix.Unmount("/proc", unix.MNT_DETACH)
}
