package helper

import "golang.org/x/sys/unix"

// signalAll signals every process of the call.
func (h *holder) signalAll(sig unix.Signal) {
	if h.spec.apart() {
		_ = unix.Kill(-1, sig)
		return
	}
	for _, p := range h.members() {
		_ = p.Signal(sig)
	}
}

// wake continues those processes of the call that are stopped. The others, which
// may have a trap for CONT, hear nothing.
func (h *holder) wake() {
	for _, p := range h.members() {
		if p.State == 'T' {
			_ = p.Signal(unix.SIGCONT) // it may have ended
		}
	}
}

// signalForeground signals the foreground group.
func (h *holder) signalForeground(sig unix.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if group, ok := h.foregroundLocked(); ok {
		_ = unix.Kill(-group, sig) // the group may just have ended
	}
}

// signalShell signals the shell alone.
func (h *holder) signalShell(sig unix.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.reaped {
		_ = unix.Kill(h.shell, sig)
	}
}

// foreground is the group that has the terminal, or the shell's when there is no
// terminal. It is false when the shell has ended.
func (h *holder) foreground() (group int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.foregroundLocked()
}

func (h *holder) foregroundLocked() (group int, ok bool) {
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
