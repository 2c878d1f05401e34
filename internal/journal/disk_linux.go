package journal

import (
	"errors"
	"os"
	"syscall"
)

// syncData brings the content of a file to the disk (fdatasync(2)).
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
