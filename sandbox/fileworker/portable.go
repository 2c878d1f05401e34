package fileworker

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox/internal/fileops"
)

// These functions open and replace files in the daemon on systems without openat2(2). On Linux, only their tests use
// them.

var (
	errMoved      = errors.New("something on the way was replaced after the call was judged, or is a symbolic link")
	errNotRegular = errors.New("it is no regular file")
)

// openPortable opens a regular file for reading. It checks each directory of the path.
func openPortable(canonical string) (*os.File, error) {
	f, err := openStepwise(canonical)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", canonical, paths.Bare(err))
	}
	return f, nil
}

func openStepwise(canonical string) (*os.File, error) {
	dir, err := dirStepwise(filepath.Dir(canonical), false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	name := filepath.Base(canonical)
	seen, err := dir.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, errMoved
	case !seen.Mode().IsRegular():
		return nil, errNotRegular
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(seen, now) {
		f.Close()
		return nil, errors.Join(errMoved, err)
	}
	return f, nil
}

// dirStepwise opens a directory component by component. With parents, it creates missing ones.
func dirStepwise(canonical string, parents bool) (*os.Root, error) {
	dir, err := os.OpenRoot("/")
	rest, name := strings.TrimPrefix(canonical, "/"), ""
	for err == nil && rest != "" {
		if name, rest, _ = strings.Cut(rest, "/"); name == "" {
			continue
		}
		up := dir
		dir, err = stepInto(up, name, parents)
		up.Close()
	}
	return dir, err
}

func stepInto(up *os.Root, name string, parents bool) (*os.Root, error) {
	seen, err := up.Lstat(name)
	if parents && errors.Is(err, fs.ErrNotExist) {
		if err = up.Mkdir(name, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
			seen, err = up.Lstat(name)
		}
	}
	if err != nil {
		return nil, err
	}
	if !seen.IsDir() {
		return nil, errMoved
	}
	dir, err := up.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := dir.Stat("."); err != nil || !os.SameFile(seen, now) {
		dir.Close()
		return nil, errors.Join(errMoved, err)
	}
	return dir, nil
}

// replacePortable replaces a file by renaming another over it. It keeps the mode.
func replacePortable(canonical string, r Replacement) error {
	if err := replaceStepwise(canonical, r); err != nil {
		return fmt.Errorf("cannot write %s: %w", canonical, paths.Bare(err))
	}
	return nil
}

func replaceStepwise(canonical string, r Replacement) error {
	dir, err := dirStepwise(filepath.Dir(canonical), r.Parents)
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Base(canonical)
	if err := stillThere(dir, name, r); err != nil {
		return err
	}
	if r.Remove {
		return dir.Remove(name)
	}
	temporary := ".toold-" + rand.Text() + ".tmp"
	defer func() { _ = dir.Remove(temporary) }() // fails if it has been renamed
	if err := writeNew(dir, temporary, r); err != nil {
		return err
	}
	if r.Old == nil {
		return dir.Link(temporary, name) // fails if the name exists
	}
	if err := stillThere(dir, name, r); err != nil {
		return err
	}
	return dir.Rename(temporary, name)
}

func stillThere(dir *os.Root, name string, r Replacement) error {
	if r.Old == nil {
		return nil
	}
	there, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	opened, err := r.Old.Stat()
	if err != nil {
		return err
	}
	changed := r.Seen != nil && (!opened.ModTime().Equal(r.Seen.ModTime()) || opened.Size() != r.Seen.Size())
	if changed || !os.SameFile(there, opened) {
		return fileops.ErrChanged
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("the file itself is not to be written: %w", err)
	}
	return f.Close()
}

func writeNew(dir *os.Root, name string, r Replacement) error {
	mode := fs.FileMode(0o666)
	like := cmp.Or(r.Old, r.Like)
	if like != nil {
		mode = 0o600 // until it gets the mode of the old file
	}
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(r.Data)
	if err == nil && like != nil {
		var old fs.FileInfo
		if old, err = like.Stat(); err == nil {
			err = f.Chmod(old.Mode().Perm())
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
