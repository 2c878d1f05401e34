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
