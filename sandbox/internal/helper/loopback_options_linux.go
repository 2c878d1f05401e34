//go:build linux && (amd64 || arm64)

package helper

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

type socketOption struct{ level, name int }

func copyOptions(from, to int) error {
	for _, o := range []socketOption{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE},
		{unix.SOL_SOCKET, unix.SO_RCVTIMEO},
		{unix.SOL_SOCKET, unix.SO_SNDTIMEO},
		{unix.SOL_SOCKET, unix.SO_LINGER},
		{unix.SOL_SOCKET, unix.SO_RCVLOWAT},
		{unix.SOL_SOCKET, unix.SO_OOBINLINE},
		{unix.IPPROTO_TCP, unix.TCP_NODELAY},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
	} {
		value, err := o.of(from)
		if err == nil {
			err = unix.SetsockoptString(to, o.level, o.name, string(value))
		}
		if err != nil {
			return err
		}
	}
	return copyBuffers(from, to)
}

// copyBuffers copies the buffer sizes that a program has set, with which the kernel no longer adapts them
// (socket(7)). Before Linux 5.14, which does not report that, it copies none.
func copyBuffers(from, to int) error {
	set, err := unix.GetsockoptInt(from, unix.SOL_SOCKET, unix.SO_BUF_LOCK)
	if err != nil {
		return nil
	}
	for lock, name := range map[int]int{unix.SOCK_SNDBUF_LOCK: unix.SO_SNDBUF, unix.SOCK_RCVBUF_LOCK: unix.SO_RCVBUF} {
		if set&lock == 0 {
			continue
		}
		doubled, err := unix.GetsockoptInt(from, unix.SOL_SOCKET, name)
		if err == nil {
			err = unix.SetsockoptInt(to, unix.SOL_SOCKET, name, doubled/2)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o socketOption) of(socket int) ([]byte, error) {
	value := make([]byte, 16) // a struct timeval
	size := uint32(len(value))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(socket), uintptr(o.level), uintptr(o.name),
		uintptr(unsafe.Pointer(&value[0])), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return nil, e
	}
	return value[:size], nil
}
