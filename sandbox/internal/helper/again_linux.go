package helper

import (
	"bytes"
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// A helper may run several calls in sequence (Spec.Again), which saves starting a program and creating a network.
// Nothing of a call remains: the helper, as its init process, has seen its processes end, and its mounts, including
// /tmp and everything else that is private, are removed. A helper ends instead of running another call if the call
// used the network, left something in System V IPC, or changed attributes that the kernel keeps per process or
// session. (The filter refuses POSIX message queues.)

// traces is the state that a call can change and that outlives it.
type traces struct {
	loopback  string // counters of lo: a connection may leave state, at least TIME_WAIT
	autogroup string // nice value of the session (sched(7))
	oom, core string // oom_score_adj and coredump_filter, which children inherit
}

// readTraces returns an error if any of them is unknown.
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

// isClean reports whether the call left nothing behind. It must be called in the view of the call, after its
// processes have ended.
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

// keepCapabilities keeps, in every thread, the capabilities to create and remove views. Threads that start calls drop
// these too. psx may need the namespace's /proc to reach every thread.
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

// rest removes what the call created, and reports that the helper is idle. If something of the call may remain, the
// helper ends.
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
