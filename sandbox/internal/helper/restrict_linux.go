//go:build linux && (amd64 || arm64)

package helper

import (
	"errors"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/plan"
)

// The processes of calls inherit the filters of the starter. Each gives up its capabilities, and enters its Landlock
// domain, before it executes the shell (package plan). So the other threads of the helper keep what they need for the
// next call, and none of them is in the domain: Landlock allows signals within a domain, and counts a process to it as
// soon as one of its threads is.

// restrictions is what a new process restricts itself with.
type restrictions struct {
	abi   int // version of Landlock; 0 = there is none
	rules int // descriptor of its rules
}

// restrict prepares the restrictions. The caller must close them.
func (s *Spec) restrict() (r *restrictions, err error) {
	r = &restrictions{rules: -1}
	if s.Landlock {
		r.rules, r.abi, err = fileRules(s)
	}
	return r, stage("landlock", err)
}

func (r *restrictions) close() {
	if r != nil && r.rules >= 0 {
		unix.Close(r.rules)
	}
}

// restrict puts on the thread what its children inherit. All threads of the helper must exist.
func (t *starter) restrict(s *Spec) (err error) {
	t.run(func() { err = t.filter(s) })
	t.restricted = true
	return stage("seccomp", err)
}

func (t *starter) filter(s *Spec) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil || !s.Seccomp {
		return err
	}
	if err := t.filterCalls(s); err != nil {
		return err
	}
	if s.Listed {
		if _, err := assemble(socketsFilter(s.Offline)).install(0); err != nil {
			return err
		}
	}
	t.threads, _ = threadCount() // before restrictOthers: a thread created in between shows
	return restrictOthers(s)
}

// filterCalls installs the main filter. If the kernel does not support a broker (before Linux 5.19, or if an outer
// filter has a listener), the filter refuses local sockets.
func (t *starter) filterCalls(s *Spec) (err error) {
	if canBroker(s) {
		t.listener, err = assemble(filter(true)).install(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
		if err == nil {
			return t.prepareBrokers()
		}
		if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	_, err = assemble(filter(false)).install(0)
	return err
}

func (t *starter) prepareBrokers() (err error) {
	// Wakes each on the CPU of the other (Linux 6.6), which is three times as fast.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(t.listener), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	t.over, err = unix.Eventfd(0, unix.EFD_CLOEXEC)
	return err
}

// startConfined starts the shell with the restrictions, its descriptors above 2 being extra, and its broker.
func (h *supervisor) startConfined(r *restrictions, extra []uintptr) error {
	extra, err := above(extra)
	defer closeAll(extra)
	if err != nil {
		return err
	}
	p, err := planShell(&h.spec, r, extra)
	if err != nil {
		return err
	}
	h.site.starter.run(func() { h.shell, err = p.Start() })
	if failed, is := errors.AsType[*plan.Error](err); is {
		return stage(failed.Name, failed.Errno)
	}
	if err == nil && h.site.starter.listener >= 0 {
		h.broker = newBroker(&h.spec, h.site.starter)
		h.broker.lend(h.lenders)
		// Ends with the call.
		h.broker.work.Go(h.broker.serve)
	}
	return err
}

// above moves descriptors out of the way of those that the shell gets, and closes the old ones.
func above(extra []uintptr) (moved []uintptr, err error) {
	for _, fd := range extra {
		to, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3+len(extra))
		if err != nil {
			return moved, stage("pass a descriptor", err)
		}
		unix.Close(int(fd))
		moved = append(moved, uintptr(to))
	}
	return moved, nil
}

func closeAll(fds []uintptr) {
	for _, fd := range fds {
		unix.Close(int(fd))
	}
}

// planShell lists what the new process does. It has no capabilities when it enters the Landlock domain.
func planShell(s *Spec, r *restrictions, extra []uintptr) (*plan.Plan, error) {
	var p plan.Plan
	p.Do("set the process group", unix.SYS_SETPGID, 0, 0)
	header, none := capabilities(0)
	p.Do("drop capabilities", unix.SYS_CAPSET, p.Address(unsafe.Pointer(header)), p.Address(unsafe.Pointer(none)))
	if s.Landlock {
		p.Do("landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.rules), 0)
	}
	for fd := range uintptr(3) {
		p.Do("pass a descriptor", unix.SYS_FCNTL, fd, unix.F_SETFD, 0)
	}
	for i, fd := range extra {
		p.Do("pass a descriptor", unix.SYS_DUP3, fd, uintptr(3+i), 0)
	}
	p.Signals()
	if s.Probe {
		p.Do("exit", unix.SYS_EXIT_GROUP, 0)
		return &p, nil
	}
	name := "start " + s.Argv[0]
	if slices.ContainsFunc(slices.Concat(s.Argv, s.Env), hasNUL) {
		return nil, stage(name, unix.EINVAL)
	}
	p.Do(name, unix.SYS_EXECVE, p.String(s.Argv[0]), p.Strings(s.Argv), p.Strings(s.Env))
	return &p, nil
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }
