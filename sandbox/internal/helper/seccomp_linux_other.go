//go:build linux && !amd64 && !arm64

package helper

import "golang.org/x/sys/unix"

// restrictions are empty: without a filter for this architecture, nothing runs confined.
type restrictions struct{ abi int }

func (s *Spec) restrict() (*restrictions, error) {
	if s.restricted() {
		return nil, stage("seccomp", unix.ENOSYS)
	}
	return &restrictions{}, nil
}

func (*restrictions) close() {}

func (*starter) restrict(*Spec) error { return unix.ENOSYS }

func (h *supervisor) startConfined(*restrictions, []uintptr) error { return unix.ENOSYS }

// broker is empty, since no filter notifies it.
type broker struct{}

func (*broker) wait() bool { return true }

func (*broker) lend([]int) {}

func (*Spec) serveLoopback(fd int) { unix.Close(fd) }
