//go:build !linux

package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// OpenFile opens a regular file for reading by its canonical path. A symbolic
// link in its last component is an error; links in the folders above are only
// refused on Linux. fs.ErrNotExist is visible to errors.Is.
func OpenFile(canonical string) (*os.File, error) {
	folder, err := os.OpenRoot(filepath.Dir(canonical))
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", canonical, err)
	}
	defer folder.Close()
	return openIn(folder, canonical)
}

func openIn(folder *os.Root, canonical string) (*os.File, error) {
	name := filepath.Base(canonical)
	before, err := folder.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", canonical, err)
	}
	if err := regular(before, canonical); err != nil {
		return nil, err
	}
	f, err := folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", canonical, err)
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("cannot open %s: %w", canonical, errChanged)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

var errChanged = errors.New("the file was replaced by another one meanwhile; read it again")

// ReplaceFile gives a file new content at once: readers see the old file or
// the new one, a full disk leaves the old one. The new file is written beside
// the old one, synced, and renamed. Of the old one's attributes only the mode is
// kept here.
func ReplaceFile(canonical string, r Replacement) error {
	parent, name := filepath.Split(canonical)
	if r.Parents {
		if err := os.MkdirAll(parent, 0o777); err != nil {
			return fmt.Errorf("cannot write %s: %w", canonical, err)
		}
	}
	folder, err := os.OpenRoot(parent)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", canonical, err)
	}
	defer folder.Close()
	mode, err := unchanged(folder, name, r.Old)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", canonical, err)
	}
	temporary, err := writeBeside(folder, r, mode)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", canonical, err)
	}
	if err := folder.Rename(temporary, name); err != nil {
		folder.Remove(temporary)
		return fmt.Errorf("cannot write %s: %w", canonical, err)
	}
	return nil
}

// unchanged verifies that name is still the old file, or still free, and
// returns the mode that the new file gets.
func unchanged(folder *os.Root, name string, old *os.File) (fs.FileMode, error) {
	there, err := folder.Lstat(name)
	if old == nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return 0, fs.ErrExist
		}
		return 0o666, nil
	}
	if err != nil {
		return 0, err
	}
	opened, err := old.Stat()
	if err != nil {
		return 0, err
	}
	if !os.SameFile(there, opened) {
		return 0, errChanged
	}
	return opened.Mode().Perm(), nil
}

func writeBeside(folder *os.Root, r Replacement, mode fs.FileMode) (name string, err error) {
	var b [8]byte
	rand.Read(b[:]) // never fails
	name = ".toold-" + hex.EncodeToString(b[:]) + ".tmp"

	// See golang/go#22315: a child must not inherit the file open for writing.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	_, err = f.Write(r.Data)
	if err == nil && r.Old != nil { // a new file has what umask left
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		folder.Remove(name)
		return "", err
	}
	return name, nil
}
