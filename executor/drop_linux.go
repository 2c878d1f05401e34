package executor

import (
	"os"

	"golang.org/x/sys/unix"
)

// DropInput discards what was typed at a terminal and not read (tcflush(3)).
func DropInput(f *os.File) {
	_ = withFD(f, func(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) }) // ENOTTY: it is no terminal
}
