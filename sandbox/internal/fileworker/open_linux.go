package fileworker

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Open opens a regular file for reading by its canonical path, nonblocking, following no link
// (openat2(2)).
func Open(path string) (fd int, err error) {
	// Opening a device or a pipe has side effects, so the type is checked first. The check of
	// the opened file counts.
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err == nil {
		if err := regular(st.Mode); err != nil {
			return -1, err
		}
	}
	fd, err = OpenAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.ENXIO) {
		return -1, errors.New("it is a socket or a device without a driver, not a regular file")
	}
	if err != nil {
		return -1, err
	}
	if err = unix.Fstat(fd, &st); err == nil {
		err = regular(st.Mode)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// OpenDir opens a directory for listing by its canonical path, following no link.
func OpenDir(path string) (fd int, err error) {
	return OpenAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
}

// regular fails for what is not a regular file: reading it might never end.
func regular(mode uint32) error {
	kind := "something else"
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return nil
	case unix.S_IFDIR:
		kind = "a directory"
	case unix.S_IFIFO:
		kind = "a named pipe"
	case unix.S_IFSOCK:
		kind = "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		kind = "a device"
	case unix.S_IFLNK:
		kind = "a symbolic link that was not there when the call was judged"
	}
	return errors.New("it is " + kind + ", not a regular file")
}

// OpenAt is openat2(2) following no link, close-on-exec.
func OpenAt(dir int, path string, flags uint64) (int, error) {
	for {
		fd, err := unix.Openat2(dir, path, &unix.OpenHow{
			Flags:   flags | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
