package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reservePort returns a port of 127.0.0.1 that the kernel gives to nobody else until release
// is called. A daemon can listen on it all the same: its socket and ours, which is bound and
// does not listen, both have SO_REUSEADDR.
func reservePort() (port int, release func() error, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	release = func() error { return unix.Close(fd) }
	if err := errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
	); err != nil {
		return 0, nil, errors.Join(fmt.Errorf("cannot reserve a port: %w", err), release())
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return 0, nil, errors.Join(os.NewSyscallError("getsockname", err), release())
	}
	return at.(*unix.SockaddrInet4).Port, release, nil
}
