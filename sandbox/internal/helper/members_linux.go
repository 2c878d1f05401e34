package helper

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// isAlone waits at most d for the last process of the call to end.
func (h *supervisor) isAlone(d time.Duration) bool {
	select {
	case <-h.alone:
		return true
	default:
	}
	if d == 0 {
		return false
	}
	select {
	case <-h.alone:
		return true
	case <-time.After(d):
		return false
	}
}

func (h *supervisor) members() []Proc {
	if h.isAlone(0) {
		return nil // the usual case, without reading the whole table
	}
	return h.pick(Processes())
}

// pick returns the living processes of the call among all.
func (h *supervisor) pick(all []Proc) []Proc {
	if !h.spec.apart() {
		return descendants(all, os.Getpid())
	}
	var found []Proc
	for _, p := range all {
		if p.PID != os.Getpid() && !p.Ended() {
			found = append(found, p)
		}
	}
	return found
}

func (h *supervisor) list(kind string) Event {
	e := Event{Kind: kind}
	for _, p := range h.members() {
		e.Runnable = e.Runnable || p.Busy()
		if len(e.Members) < maxMembers {
			e.Members = append(e.Members, Member{p.PID, describe(p)})
		}
	}
	return e
}

func (h *supervisor) kill() {
	if h.spec.apart() {
		_ = unix.Kill(-1, unix.SIGKILL) // ESRCH: none left
		return
	}
	_ = Sweep(h.members) // reap reports their end
}
