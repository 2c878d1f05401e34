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
)

// Stores lists the stores of Open below dir. A missing dir has none; a store that
// disappears meanwhile is skipped. It stats every file.
func Stores(dir string) ([]Store, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list tool caches: %w", err)
	}
	var list []Store
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Lstat(filepath.Join(path, lockName))
		if err != nil {
			continue // not made by Open
		}
		list = append(list, Store{Path: path, Used: info.ModTime(), Bytes: sizeBelow(path)})
	}
	return list, nil
}

// sizeBelow returns the disk space used by a directory.
func sizeBelow(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // unreadable files count as 0
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += st.Blocks * 512
		}
		return nil
	})
	return bytes
}

// InUse reports whether an open Set has the store, or a call that outlived it.
func (s Store) InUse() bool {
	lock, err := os.OpenFile(filepath.Join(s.Path, lockName), os.O_RDWR, 0)
	if err != nil {
		return false // RemoveStore says why
	}
	defer lock.Close()
	return errors.Is(unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// RemoveStore removes a store, and nothing else. It returns false if the store is in use by an
// open Set, or a call that outlived it.
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
	// Calls may have removed permissions from directories. No one can create links there any more.
	_ = filepath.WalkDir(path, func(below string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			if info, err := d.Info(); err == nil && info.Mode().Perm()&0o700 != 0o700 {
				_ = os.Chmod(below, 0o700)
			}
		}
		return nil
	})
	if err := os.RemoveAll(path); err != nil {
		return false, fmt.Errorf("cannot remove tool caches: %w", err)
	}
	return true, nil
}

// touchLock updates the store's time, and reports whether the locked file is still the store's:
// another process may have removed it meanwhile.
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
