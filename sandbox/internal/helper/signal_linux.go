package helper

import (
	"os"
	"os/signal"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

func clean() {
	unix.CloseOnExec(ControlFD)
	// Without close_range (before Linux 5.9) nothing is needed, since the daemon opens everything close-on-exec.
	_ = unix.CloseRange(ControlFD+1, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &unix.Sigset_t{}, nil)
	unix.Umask(0o022)
}

// aside runs do on another thread. wait returns when it has ended.
func aside(do func()) (wait func()) {
	var thread sync.WaitGroup
	// Ends with do.
	thread.Go(do)
	return thread.Wait
}

// setSignals makes the helper ignore signals of the call, and gives the shell the default action for all, whatever
// the daemon has inherited, for example from nohup. Handlers achieve both, since exec resets them.
//
// The Go runtime handles nearly every signal. For those listed first it would exit, unless signal.Notify is used. The
// default action would not suffice, although the kernel spares the first process of a namespace: not while the
// forking thread blocks signals. Notify for all others would cost a thread switch for each. It runs while the view is
// built, before the call runs.
func setSignals() {
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGILL,
		unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGSTKFLT, unix.SIGSYS)
	var byDefault [4]uint64 // the kernel's struct sigaction with SIG_DFL, no flags, no mask
	for _, sig := range []unix.Signal{unix.SIGCHLD, unix.SIGCONT, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU} {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	}
}

func (h *supervisor) signalAll(sig unix.Signal) {
	if h.spec.apart() {
		_ = unix.Kill(-1, sig)
		return
	}
	for _, p := range h.members() {
		_ = p.Signal(sig)
	}
}

// wake sends CONT to the stopped processes of the call.
func (h *supervisor) wake() {
	for _, p := range h.members() {
		if p.State == 'T' || p.State == 'Z' { // a main thread that has ended hides that the others are stopped
			_ = p.Signal(unix.SIGCONT) // it may have ended
		}
	}
}

// signal carries out an order to send a signal. It answers the daemon, unless the signal is for all processes.
func (h *supervisor) signal(o Order) {
	sig := unix.Signal(o.Signal)
	switch o.Kind {
	case OrderSignalAll:
		h.signalAll(sig)
		return
	case OrderSignal:
		h.signalForeground(sig)
	case OrderSignalOne:
		h.signalShell(sig)
	}
	send(Event{Kind: EventSignalled})
}

func (h *supervisor) signalForeground(sig unix.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if group, ok := h.foregroundLocked(); ok {
		_ = unix.Kill(-group, sig) // the group may just have ended
	}
}

func (h *supervisor) signalShell(sig unix.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.reaped {
		_ = unix.Kill(h.shell, sig)
	}
}

// foreground returns the foreground group of the terminal, or the shell's. ok is false once the shell has ended.
func (h *supervisor) foreground() (group int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.foregroundLocked()
}

func (h *supervisor) foregroundLocked() (group int, ok bool) {
	if h.reaped {
		return 0, false
	}
	if h.spec.Terminal {
		if g, err := unix.IoctlGetInt(0, unix.TIOCGPGRP); err == nil && g > 1 {
			return g, true
		}
	}
	return h.shell, true
}
