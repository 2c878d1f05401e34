package executor

import (
	"os"

	"golang.org/x/sys/unix"
)

// DropInput discards the unread input of a terminal (tcflush(3)). It does nothing if f is not a terminal.
func DropInput(f *os.File) {
	_ = withFD(f, func(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }) // fails with ENOTTY if it is no terminal
}
