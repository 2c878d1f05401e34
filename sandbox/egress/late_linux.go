package egress

import (
	"net"
	"net/netip"
	"syscall"
)

// late accepts and closes a pending connection, and returns its local address.
func late(l net.Listener) (local net.Addr, ok bool) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil, false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, false
	}
	err = raw.Control(func(listener uintptr) { // nonblocking
		fd, _, err := syscall.Accept4(int(listener), syscall.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		at, _ := syscall.Getsockname(fd) // nil after an error
		if v4, ok := at.(*syscall.SockaddrInet4); ok {
			local = net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), uint16(v4.Port)))
		}
		_ = syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
		_ = syscall.Close(fd)
	})
	return local, err == nil && local != nil
}
