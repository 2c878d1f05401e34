package helper

import (
	"bytes"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// A helper may run several calls, one after the other (Spec.Again), to save the start of a program
// and of a network. Nothing of a call stays: its processes are dead, as the helper, their init, has
// seen; its mounts, with /tmp and all that is private, are removed; and a helper whose call used
// the network, left something in System V IPC or changed attributes that the kernel keeps per
// process or session ends instead of running another. (The filter refuses POSIX message queues.)

// traces is what a call may change and its end does not undo.
type traces struct {
	loopback  string // counters of lo: a connection may leave state, at least TIME_WAIT
	autogroup string // the weight of the session (sched(7))
	oom, core string // oom_score_adj and coredump_filter, inherited by children
}

// readTraces fails if one of them is unknown.
func readTraces() (t traces, err error) {
	for _, f := range []struct {
		to   *string
		file string
	}{{&t.autogroup, "autogroup"}, {&t.oom, "oom_score_adj"}, {&t.core, "coredump_filter"}, {&t.loopback, "net/dev"}} {
		b, err := os.ReadFile("/proc/self/" + f.file)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // optional in the kernel
			return t, err
		}
		*f.to = string(b)
	}
	return t, nil
}

// isClean reports whether the call left nothing behind. It must be called in the call's view, once
// none of its processes lives.
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

// keepCapabilities leaves every thread the capabilities for making and removing views. The threads
// that start calls give up these too. To reach every thread psx may need the namespace's /proc.
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

// rest removes what the call has made and reports that the helper is idle. If something of the call
// may be left, the helper ends.
func (h *supervisor) rest() {
	close(h.over)
	h.tasks.Wait()
	h.broker.wait()
	h.warm.close()
	h.site.calls++
	able := h.site.base != nil && h.site.calls < mostCalls && !h.joined
	clean := able && h.leaveTerminal() == nil && h.isUntouched()
	if !clean || !h.site.traces.isClean() || h.site.base.leave() != nil {
		syscall.Exit(0)
	}
	for _, fd := range h.handed {
		unix.Close(fd)
	}
	send(Event{Kind: EventIdle})
}
