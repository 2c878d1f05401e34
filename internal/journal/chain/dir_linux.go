package chain

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes or releases an open file description lock (F_OFD_SETLK, fcntl(2)). It reports false if another open
// file has the lock. The kernel releases the lock when the process ends.
func lockFile(f *os.File, lock bool) (bool, error) {
	at := unix.Flock_t{Type: unix.F_UNLCK, Len: 1}
	if lock {
		at.Type = unix.F_WRLCK
	}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &at)
	if lock && errors.Is(err, unix.EBADF) { // opened only for reading: a read lock excludes writers, but not other readers
		at.Type = unix.F_RDLCK
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &at)
	}
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
