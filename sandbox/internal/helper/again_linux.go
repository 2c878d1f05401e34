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
