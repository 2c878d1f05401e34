package nofollow

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// RemoveAll removes a name in an open directory with all its contents. It follows no links and stays on one file
// system, even during concurrent changes. It uses two descriptors, however deep the tree is.
func RemoveAll(dir int, name string) error {
	if err := unlink(dir, name); err != unix.ENOTEMPTY && err != unix.EACCES {
		return ignore(err, unix.ENOENT)
	}
	top, err := OpenDir(dir, name)
	if err != nil {
		return ignore(err, unix.ENOENT)
	}
	w := walker{at: top}
	defer func() { unix.Close(w.at) }()
	if err := w.empty(); err != nil {
		return err
	}
	return ignore(unlink(dir, name), unix.ENOENT)
}

func unlink(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == unix.EISDIR || err == unix.EPERM {
		err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	}
	return err
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// walker removes the contents of a directory from the bottom up.
type walker struct {
	at    int // the directory that is being emptied
	above []step
}

// step is a parent directory, and the name through which the walker descended.
type step struct {
	id   ID
	name string
}

func (w *walker) empty() error {
	for {
		down, err := w.clear()
		switch {
		case err != nil:
			return err
		case down != "":
			err = w.descend(down)
		case len(w.above) == 0:
			return nil
		default:
			err = w.ascend()
		}
		if err != nil {
			return err
		}
	}
}

// clear removes what it can, and returns the first directory that is not empty, or "".
func (w *walker) clear() (down string, err error) {
	for {
		names, err := list(w.at)
		if err == io.EOF || err == nil && len(names) == 0 {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		for _, name := range names {
			switch err := unlink(w.at, name); err {
			case nil, unix.ENOENT:
			case unix.ENOTEMPTY:
				return name, nil
			default:
				return "", fmt.Errorf("cannot remove %q: %w", name, err)
			}
		}
	}
}

func (w *walker) descend(name string) error {
	here, err := Stat(w.at, "")
	if err != nil {
		return err
	}
	next, err := OpenDir(w.at, name)
	if err != nil {
		return ignore(err, unix.ENOENT)
	}
	unix.Close(w.at)
	w.at = next
	w.above = append(w.above, step{here.ID, name})
	return nil
}

// ascend returns to the parent, if that is still the parent.
func (w *walker) ascend() error {
	last := w.above[len(w.above)-1]
	up, err := unix.Openat(w.at, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if in, err := Stat(up, ""); err != nil || in.ID != last.id {
		unix.Close(up)
		return errors.New("a directory was moved while it was being removed")
	}
	unix.Close(w.at)
	w.at, w.above = up, w.above[:len(w.above)-1]
	return ignore(ignore(unlink(w.at, last.name), unix.ENOENT), unix.ENOTEMPTY)
}

// list returns some of the names in an open directory, from its start.
func list(dir int) ([]string, error) {
	const some = 1024
	fd, err := Reopen(dir)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	names, err := f.Readdirnames(some)
	if len(names) > 0 {
		err = nil
	}
	return names, err
}
