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

// The new process of a shell restricts itself before it executes the shell (package plan). So the threads of the helper
// keep what they need for the next call, and none of them is in the Landlock domain of the call: Landlock allows signals
// within a domain, and counts a process to it as soon as one of its threads is in it.

// restrictions is what restricts the processes of a call, besides its view.
type restrictions struct {
	abi   int  // version of Landlock; 0 = there is none
	rules int  // descriptor of its rules
	asks  bool // the filter asks the broker
}

// restrict prepares the restrictions. The caller must close them.
func (t *site) restrict(s *Spec) (r *restrictions, err error) {
	r = &restrictions{rules: -1}
	if !s.restricted() {
		return r, nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, stage("seccomp", err)
	}
	r.asks = s.Seccomp && !t.refusesListener && canBroker(s)
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

// stageListener is the stage at which the kernel refuses a filter that asks.
const stageListener = "seccomp listener"

// startConfined starts the shell with the restrictions, its descriptors above 2 being extra. If the kernel refuses a
// filter that asks (before Linux 5.19, or if an outer filter has a listener), the filter refuses local sockets.
func (h *supervisor) startConfined(r *restrictions, extra []uintptr) error {
	extra, err := above(extra)
	defer closeAll(extra)
	if err != nil {
		return err
	}
	for {
		p, err := h.site.planShell(&h.spec, r, extra)
		if err != nil {
			return err
		}
		h.shell, err = p.Start()
		failed, _ := errors.AsType[*plan.Error](err)
		switch {
		case err == nil && r.asks:
			return h.startBroker()
		case failed == nil:
			return err
		case failed.Name != stageListener || failed.Errno != unix.EINVAL && failed.Errno != unix.EBUSY:
			return stage(failed.Name, failed.Errno)
		}
		h.site.refusesListener, r.asks = true, false
	}
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
func (t *site) planShell(s *Spec, r *restrictions, extra []uintptr) (*plan.Plan, error) {
	var p plan.Plan
	p.Do("set the process group", unix.SYS_SETPGID, 0, 0)
	header, none := capabilities(0)
	p.Do("drop capabilities", unix.SYS_CAPSET, p.Address(unsafe.Pointer(header)), p.Address(unsafe.Pointer(none)))
	if s.Landlock {
		p.Do("landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.rules), 0)
	}
	t.filterCalls(&p, s, r)
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

// filterCalls adds the filters, and sends the listener of the first to the helper.
func (t *site) filterCalls(p *plan.Plan, s *Spec, r *restrictions) {
	if !s.Seccomp {
		return
	}
	install := func(name string, f program, flags uintptr) {
		argument := p.Address(unsafe.Pointer(f.argument()))
		p.Do(name, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, argument)
	}
	if r.asks {
		if t.asking == nil {
			t.asking = assemble(filter(true))
		}
		install(stageListener, t.asking, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
		t.passResult(p)
	} else {
		install("seccomp", assemble(filter(false)), 0)
	}
	if s.Listed {
		install("seccomp", assemble(socketsFilter(s.Offline)), 0)
	}
}

// passResult sends the descriptor that the latest call returns to t.passed[0].
func (t *site) passResult(p *plan.Plan) {
	control := unix.UnixRights(0) // with room for 64 bits
	p.Store(control[unix.CmsgLen(0):])
	text := []byte{0}
	part := unix.Iovec{Base: &text[0], Len: 1}
	message := unix.Msghdr{Iov: &part, Iovlen: 1, Control: &control[0]}
	message.SetControllen(len(control))
	p.Do("seccomp", unix.SYS_SENDMSG, uintptr(t.passed[1]), p.Address(unsafe.Pointer(&message)), unix.MSG_NOSIGNAL)
}

// startBroker takes the listener that the new process has sent.
func (h *supervisor) startBroker() error {
	_, fds, err := receive(h.site.passed[0], make([]byte, 1))
	if err == nil && len(fds) != 1 {
		err = errGarbled
	}
	if err != nil {
		return stage("seccomp", err)
	}
	h.broker = newBroker(&h.spec, fds[0])
	h.broker.lend(h.lenders)
	// Ends with the call.
	h.broker.work.Go(h.broker.serve)
	return nil
}
