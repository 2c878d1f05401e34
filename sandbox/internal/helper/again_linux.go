package helper

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// A helper may run several calls in sequence (Spec.Again), which saves starting a program and creating a network.
// Nothing of a call remains: the helper, as its init process, has seen its processes end, and its mounts, including
// /tmp and everything else that is private, are removed. A helper ends instead of running another call if the call
// used a network of its own, left something in System V IPC, or changed attributes that the kernel keeps per process or
// session. (The filter refuses POSIX message queues.) Of an unconfined call, which can change what it wants, only these
// attributes are compared, and those that its processes inherit.

// traces is the state that a call can change and that outlives it, as files in /proc show it.
type traces struct {
	files  []int    // descriptors
	before []string // what they contained before the first call
}

const mostTraces = 4 << 10 // bytes of a file

// openTraces returns an error if any of them is unknown.
func openTraces(s *Spec) (*traces, error) {
	t := &traces{}
	// The nice value of the session (sched(7)), and what children inherit.
	names := []string{"self/autogroup", "self/oom_score_adj", "self/coredump_filter"}
	if s.Namespaces { // a line for each object
		names = append(names, "sysvipc/shm", "sysvipc/sem", "sysvipc/msg")
	}
	if s.Loopback {
		// The counters of lo: a connection may leave state, at least TIME_WAIT. The others have a line for each object.
		names = append(names, "self/net/dev", "self/net/unix", "self/net/ip6_flowlabel")
	}
	for _, name := range names {
		fd, err := unix.Open("/proc/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) { // optional in the kernel
			continue
		}
		if err != nil {
			return nil, err
		}
		t.files = append(t.files, fd)
	}
	var buf [mostTraces]byte
	for _, fd := range t.files {
		n, err := unix.Pread(fd, buf[:], 0)
		if err != nil {
			return nil, err
		}
		t.before = append(t.before, string(buf[:n]))
	}
	return t, nil
}

// isClean reports whether the call, whose processes have ended, left nothing behind.
func (t *traces) isClean() bool {
	var buf [mostTraces]byte
	for i, fd := range t.files {
		n, err := unix.Pread(fd, buf[:], 0)
		if err != nil || n == len(buf) || string(buf[:n]) != t.before[i] {
			return false
		}
	}
	return true
}

// keepCapabilities keeps, in every thread, the capabilities to create and remove views. psx may need the namespace's
// /proc to reach every thread.
func keepCapabilities() error {
	if err := unix.Mount("proc", "/proc", "proc", flagsPlain|unix.MS_NOEXEC, ""); err != nil {
		return stage("mount /proc", err)
	}
	keep := uint32(1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_CHROOT)
	if err := setCapabilities(keep); err != nil {
		return err
	}
	return unix.Unmount("/proc", unix.MNT_DETACH)
}

// rest removes what the call created, and reports that the helper is idle. If something of the call may remain, the
// helper ends.
func (h *supervisor) rest() {
	h.endTasks()
	brokers := h.broker.wait()
	h.warm.close()
	h.site.calls++
	able := h.site.traces != nil && h.site.calls < mostCalls && brokers
	left := h.joined || h.leaveTerminal() != nil
	if !able || left || !h.isClean() {
		syscall.Exit(0)
	}
	for _, fd := range h.handed {
		unix.Close(fd)
	}
	send(Event{Kind: EventIdle})
}

// inherited is what an unconfined call inherits from the helper, and can change there, besides what traces show.
type inherited struct {
	limits   [unix.RLIMIT_RTTIME + 1]syscall.Rlimit
	schedule unix.SchedAttr
	cpus     unix.CPUSet
	io       uintptr
}

// inheritedNow ignores errors: what the kernel does not tell remains zero.
func inheritedNow() (now inherited) {
	const process = 1 // IOPRIO_WHO_PROCESS
	starter := syscall.Getpid()
	for which := range now.limits {
		_ = syscall.Getrlimit(which, &now.limits[which])
	}
	if schedule, err := unix.SchedGetAttr(starter, 0); err == nil {
		now.schedule = *schedule
	}
	_ = unix.SchedGetaffinity(starter, &now.cpus)
	now.io, _, _ = unix.Syscall(unix.SYS_IOPRIO_GET, process, uintptr(starter), 0)
	return now
}

// isClean removes the view of the call, and reports whether nothing of the call remains.
func (h *supervisor) isClean() bool {
	if !h.spec.restricted() {
		return h.site.traces.isClean() && h.inherits == inheritedNow()
	}
	return h.isUntouched() && h.site.traces.isClean() && h.site.base.leave() == nil
}
