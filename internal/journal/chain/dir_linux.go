package chain

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks a file for the open file f alone (F_OFD_SETLK), or releases it. It
// reports false when another open file has the lock. The kernel releases it however a
// process ends.
func lockFile(f *os.File, lock bool) (bool, error) {
	at := unix.Flock_t{Type: unix.F_UNLCK, Len: 1}
	if lock {
		at.Type = unix.F_WRLCK
	}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &at)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
