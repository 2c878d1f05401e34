package fileops

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// Open opens a regular file for nonblocking reads by its canonical path without following links (openat2(2)).
func Open(path string) (fd int, err error) {
	// Opening a device or a pipe has side effects, so the type is checked first. The check of the opened file is the
	// reliable one.
	if in, err := nofollow.Lstat(path); err == nil {
		if err := regular(in.Mode); err != nil {
			return -1, err
		}
	}
	fd, err = open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.ENXIO) {
		return -1, errors.New("it is a socket or a device without a driver, not a regular file")
	}
	if err != nil {
		return -1, err
	}
	in, err := nofollow.Stat(fd, "")
	if err == nil {
		err = regular(in.Mode)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// OpenDir opens a directory for listing by its canonical path without following links.
func OpenDir(path string) (fd int, err error) {
	return open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
}

// open is nofollow.Open, except that it fails for a path that is too long for the kernel.
func open(path string, flags uint64) (int, error) {
	if len(path) >= unix.PathMax {
		return -1, unix.ENAMETOOLONG
	}
	return nofollow.Open(path, flags)
}

// regular returns an error unless the mode is that of a regular file: reading another file might never end.
func regular(mode fs.FileMode) error {
	kind := "a device"
	switch mode {
	case 0:
		return nil
	case fs.ModeDir:
		kind = "a directory"
	case fs.ModeNamedPipe:
		kind = "a named pipe"
	case fs.ModeSocket:
		kind = "a socket"
	case fs.ModeSymlink:
		kind = "a symbolic link that was not there when the call was judged"
	}
	return errors.New("it is " + kind + ", not a regular file")
}
