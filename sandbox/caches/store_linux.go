package caches

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// unmeasured is the size of a store whose size is unknown: more than any limit.
const unmeasured = 1 << 50

// Stores lists the stores of Open below dir, or none if dir does not exist. It stats every file, and skips a store
// that disappears meanwhile. A store that cannot be measured is listed as the oldest, larger than any limit, and
// causes an error as well.
func Stores(dir string) ([]Store, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list tool caches: %w", err)
	}
	var list []Store
	var failed []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Lstat(filepath.Join(path, lockName))
		if err != nil {
			continue // not made by Open
		}
		s := Store{Path: path, Used: info.ModTime()}
		if s.Bytes, err = size(path); err != nil {
			s.Used = time.Time{}
		}
		list, failed = append(list, s), append(failed, err)
	}
	return list, errors.Join(failed...)
}

// size returns the disk space that a store uses, or unmeasured and an error.
func size(store string) (int64, error) {
	bytes, err := sizeBelow(store)
	if err == nil {
		return bytes, nil
	}
	err = paths.Bare(err) // calls choose its path, which may be very long
	return unmeasured, fmt.Errorf("cannot measure the tool caches of calls in %s, which are removed once no call uses them: %w", store, err)
}

func sizeBelow(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if err == nil && path != dir && isClosed(info) {
			var below int64
			if below, err = sizeOfClosed(path); err == nil {
				bytes += below
				return fs.SkipDir
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR): // removed meanwhile
			return nil
		case err != nil:
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += st.Blocks * 512
		}
		return nil
	})
	return bytes, err
}

func isClosed(info fs.FileInfo) bool { return info.IsDir() && info.Mode().Perm()&0o500 != 0o500 }

// sizeOfClosed is sizeBelow for a directory without permissions, which it restores: some tools remove them on
// purpose.
func sizeOfClosed(dir string) (int64, error) {
	fd, err := nofollow.Open(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	mode, err := nofollow.OpenUp(fd)
	if err != nil {
		return 0, err
	}
	defer nofollow.Chmod(fd, mode)
	return sizeBelow(dir)
}

// InUse reports whether an open Set uses the store, or a call that outlived its daemon.
func (s Store) InUse() bool {
	lock, err := os.OpenFile(filepath.Join(s.Path, lockName), os.O_RDWR, 0)
	if err != nil {
		return false // RemoveStore returns the reason
	}
	defer lock.Close()
	return errors.Is(unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// RemoveStore removes a store. It returns false if an open Set uses it, or a call that outlived its daemon.
func RemoveStore(path string) (bool, error) {
	if _, err := os.Lstat(filepath.Join(path, lockName)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		return false, fmt.Errorf("cannot remove tool caches: %w", err)
	}
	lock, err := lockDir(path, 0)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if err := removeLocked(path); err != nil {
		return false, fmt.Errorf("cannot remove tool caches: %w", err)
	}
	return true, nil
}

// removeLocked removes the lock last, since a directory without a lock is no store and would never be removed.
func removeLocked(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	dir, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for _, e := range entries {
		if e.Name() == lockName {
			continue
		}
		if err := nofollow.RemoveAll(dir, e.Name()); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(path, lockName)); err != nil {
		return err
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrExist) { // another Set already uses it
		return err
	}
	return nil
}

// touchLock updates the time of the store, and reports whether the lock is still that of the store: another process
// may have removed it.
func touchLock(lock *os.File, path string) bool {
	now := time.Now()
	ours, err := lock.Stat()
	there, err2 := os.Lstat(path)
	if err != nil || err2 != nil || !os.SameFile(ours, there) {
		return false
	}
	_ = os.Chtimes(path, now, now) // a failure only makes the store look older
	return true
}
