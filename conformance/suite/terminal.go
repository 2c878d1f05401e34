//go:build linux

package suite

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// OpenTerminal makes a pseudo-terminal (ioctl_tty(2)).
func OpenTerminal() (master, terminal *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	const setLock, getPeer = 0x40045431, 0x5441 // TIOCSPTLCK, TIOCGPTPEER
	var unlocked int32
	_, _, no := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), setLock, uintptr(unsafe.Pointer(&unlocked)))
	if no != 0 {
		return nil, nil, errors.Join(no, master.Close())
	}
	fd, _, no := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), getPeer, syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC)
	if no != 0 {
		return nil, nil, errors.Join(no, master.Close())
	}
	return master, os.NewFile(fd, "terminal"), nil
}

// openWindow opens a pair of terminals as a window of the user has one, raw and
// without echo: nothing is in it but what somebody put there.
func openWindow() (master, slave *os.File, err error) {
	if master, slave, err = OpenTerminal(); err != nil {
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
