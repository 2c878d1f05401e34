package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockByte takes a write or read lock. It returns false if it conflicts with the lock of another open file.
func lockByte(f *os.File, offset int64, alone bool) (bool, error) {
	kind := int16(unix.F_RDLCK)
	if alone {
		kind = unix.F_WRLCK
	}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: offset, Len: 1})
	if alone && errors.Is(err, unix.EBADF) { // opened only for reading: a read lock excludes writers, not other readers
		return lockByte(f, offset, false)
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// Served reports whether a process serves dir.
func Served(dir string) (bool, error) { return locked(dir, 0) }

// Held reports whether a process holds a name; see Hold.
func Held(dir, name string) (bool, error) { return locked(dir, offset(name)) }

func locked(dir string, offset int64) (bool, error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot look for a daemon in %s: %w", dir, err)
	}
	defer f.Close()
	at := unix.Flock_t{Type: unix.F_WRLCK, Start: offset, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &at); err != nil {
		return false, fmt.Errorf("cannot look for a daemon in %s: %w", dir, err)
	}
	return at.Type != unix.F_UNLCK, nil
}
