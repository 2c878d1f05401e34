package helper

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// A helper may hold several calls, one after the other (Spec.Again): what it costs to start
// a program and to make a network is paid once. Of a call nothing stays. Its processes are
// dead, which the helper, their init, has seen; its mounts, with /tmp and all that is private,
// are removed; and a helper whose call used the network, left something in System V IPC or
// changed what the kernel keeps of a process or session ends instead of holding another. (The
// filter keeps calls from making POSIX message queues.)

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
	if err := unix.Chroot("/"); err != nil { // where it is refused, each view would be
		return nil, err
	}
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
	const place = "/proc" // which is there wherever there are calls
	if err = errors.Join(err, unix.MoveMount(root, "", unix.AT_FDCWD, place, unix.MOVE_MOUNT_F_EMPTY_PATH)); err != nil {
		return nil, err
	}
	if err = errors.Join(unix.Fchdir(root), unix.PivotRoot(".", baseHost)); err != nil {
		return nil, errors.Join(err, unix.Chdir("/"), unix.Unmount(place, unix.MNT_DETACH))
	}
	return &base{root}, nil
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

// traces is what a call may change and its end does not undo.
type traces struct {
	loopback  string // counters of lo: of each connection something may be left, TIME_WAIT at least
	autogroup string // the weight of the session (sched(7))
	oom, core string // oom_score_adj, coredump_filter: of a process, and so of its children
}

// readTraces fails when something cannot be known.
func readTraces() (t traces, err error) {
	for _, f := range []struct {
		to   *string
		file string
	}{{&t.autogroup, "autogroup"}, {&t.oom, "oom_score_adj"}, {&t.core, "coredump_filter"}, {&t.loopback, "net/dev"}} {
		b, err := os.ReadFile("/proc/self/" + f.file)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // the kernel may be built without
			return t, err
		}
		*f.to = string(b)
	}
	return t, nil
}

// isClean reports whether nothing of a call is left. It is called when no process of the
// call lives, and still in its view.
func (t traces) isClean() bool {
	now, err := readTraces()
	if err != nil || now != t {
		return false
	}
	for _, table := range []string{"self/net/unix", "self/net/ip6_flowlabel", "sysvipc/shm", "sysvipc/sem", "sysvipc/msg"} {
		b, err := os.ReadFile("/proc/" + table)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		const head = 1 // each further line is an entry
		if err != nil || bytes.Count(b, []byte("\n")) > head {
			return false
		}
	}
	return true
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
