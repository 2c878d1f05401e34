package executor

import (
	"os"

	"golang.org/x/sys/unix"
)

// DropInput discards the unread input of a terminal (tcflush(3)). It does nothing if f is not a terminal.
func DropInput(f *os.File) {
	_ = withFD(f, func(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }) // fails with ENOTTY if it is no terminal
}

// Unread reports whether f, such as a pipe, has data that can be read at once.
func Unread(f *os.File) bool {
	size := 0
	err := withFD(f, func(fd int) (err error) {
		size, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	})
	return err == nil && size > 0
}
