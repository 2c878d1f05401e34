package server

import (
	"errors"
	"net"
	"slices"
	"syscall"
)

// shortages lists transient errors of accept after which http.Server would stop. ENOSPC comes from epoll_ctl(2) when
// the user's programs, calls included, have used up fs.epoll.max_user_watches.
var shortages = [...]error{syscall.ENOSPC, syscall.ENOMEM, syscall.ENOBUFS}

// lasting is a listener whose transient errors make http.Server wait and retry.
type lasting struct{ net.Listener }

func (l lasting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	isShort := func(shortage error) bool { return errors.Is(err, shortage) }
	if slices.ContainsFunc(shortages[:], isShort) {
		return nil, temporary{err}
	}
	return conn, err
}

// temporary is a net.Error that makes http.Server wait and retry.
type temporary struct{ error }

func (temporary) Timeout() bool   { return false }
func (temporary) Temporary() bool { return true }
func (t temporary) Unwrap() error { return t.error }
