package display

import (
	"os"

	"golang.org/x/sys/unix"
)

// Columns returns the width of a terminal; 0 for other files.
func Columns(f *os.File) int {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	columns := 0
	err = raw.Control(func(fd uintptr) {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			columns = int(size.Col)
		}
	})
	if err != nil {
		return 0
	}
	return columns
}
