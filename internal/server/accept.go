package server

import (
	"errors"
	"net"
	"slices"
	"syscall"
)

// shortages are errors of accept that pass. http.Server tries again after some, of which these are
// none. ENOSPC comes from epoll_ctl(2) when programs of the user, calls included, have used up its
// watches (fs.epoll.max_user_watches).
var shortages = [...]error{syscall.ENOSPC, syscall.ENOMEM, syscall.ENOBUFS}

// lasting is a listener with which http.Server survives a lack of kernel resources.
type lasting struct{ net.Listener }

func (l lasting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	isShort := func(shortage error) bool { return errors.Is(err, shortage) }
	if slices.ContainsFunc(shortages[:], isShort) {
		return nil, temporary{err}
	}
	return conn, err
}

// temporary is a net.Error after which http.Server waits and tries again.
type temporary struct{ error }

func (temporary) Timeout() bool   { return false }
func (temporary) Temporary() bool { return true }
func (t temporary) Unwrap() error { return t.error }
