package chain

import (
	"errors"
	"os"
	"syscall"

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

// sameFile reports whether a path leads to a file, and the size of that.
func sameFile(path string, as os.FileInfo) (size int64, same bool, err error) {
	var now unix.Stat_t
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Stat(path, &now)
	}
	if err != nil {
		return 0, false, err
	}
	was := as.Sys().(*syscall.Stat_t)
	return now.Size, now.Dev == was.Dev && now.Ino == was.Ino, nil
}

func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
