//go:build linux

package escape

import (
	"os"
	"syscall"
	"unsafe"

	"github.com/toold/toold/conformance/suite"
)

// openWindow opens a pseudo-terminal as the user's window, raw and without echo: it has only what was written to it.
func openWindow() (master, slave *os.File, err error) {
	if master, slave, err = suite.OpenTerminal(); err != nil {
		return nil, nil, err
	}
	var mode syscall.Termios
	return master, slave, ioctl(int(slave.Fd()), syscall.TCSETS, unsafe.Pointer(&mode))
}

// pending is what can be read from a terminal at once.
func pending(f *os.File) string {
	b := make([]byte, 4096)
	fd := int(f.Fd())
	if syscall.SetNonblock(fd, true) != nil {
		return ""
	}
	n, err := syscall.Read(fd, b)
	if err != nil {
		return ""
	}
	return string(b[:n])
}
