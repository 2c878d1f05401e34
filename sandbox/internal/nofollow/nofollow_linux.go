package nofollow

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const unlinked = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// Lstat examines a path. It follows links except at its end.
func Lstat(path string) (Info, error) { return Stat(unix.AT_FDCWD, path) }

// Stat examines a name in an open directory, or the open file if name is empty.
func Stat(dir int, name string) (Info, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags = unix.AT_EMPTY_PATH
	}
	var st unix.Statx_t
	if err := unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return Info{}, err
	}
	in := Info{
		ID: ID{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Ino}, Mode: typeOf(uint32(st.Mode)), Bits: uint32(st.Mode) & 0o7777,
		Links: st.Nlink, UID: int(st.Uid), Size: int64(st.Size), Changed: time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec)),
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		in.Born = time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
	}
	return in, nil
}

// Stamp returns the time that a file changed now would get, or an earlier one: file system
// clocks advance in ticks, behind time.Now (CLOCK_REALTIME_COARSE, clock_gettime(2)). It returns
// the zero time if it cannot be read.
func Stamp() time.Time {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return time.Time{}
	}
	return time.Unix(now.Unix())
}

func typeOf(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFREG:
		return 0
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	}
	return fs.ModeDevice
}

// openat2 opens close-on-exec. It retries on EINTR.
func openat2(dir int, path string, flags, resolve uint64) (int, error) {
	for {
		fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve})
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// Open opens a path of any length, following no link.
func Open(path string, flags uint64) (fd int, err error) {
	const most = 4000 // of PATH_MAX
	dir := unix.AT_FDCWD
	for len(path) > most {
		i := strings.LastIndexByte(path[:most], '/')
		if i < 0 { // no file system has such a name
			fd, err = -1, unix.ENAMETOOLONG
		} else {
			fd, err = openat2(dir, path[:i+1], unix.O_PATH|unix.O_DIRECTORY, unlinked)
		}
		if dir != unix.AT_FDCWD {
			unix.Close(dir)
		}
		if err != nil {
			return -1, err
		}
		dir, path = fd, strings.TrimLeft(path[i+1:], "/") // a slash would begin at the root
	}
	if dir != unix.AT_FDCWD {
		defer unix.Close(dir)
	}
	return openat2(dir, path, flags, unlinked)
}

// OpenFile opens a regular file for reading, nonblocking.
func OpenFile(path string) (*os.File, error) {
	fd, err := Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	if in, err := Stat(fd, ""); err != nil || !in.Mode.IsRegular() {
		unix.Close(fd)
		return nil, fs.ErrInvalid
	}
	return os.NewFile(uintptr(fd), path), nil
}

// OpenAt opens a name in an open directory, crossing mount points.
func OpenAt(dir int, name string, flags uint64) (int, error) {
	return openat2(dir, name, flags|unix.O_NOFOLLOW, unlinked|unix.RESOLVE_BENEATH)
}

// OpenIn opens a name in a directory that calls can write, nothing above it or on another file
// system.
func OpenIn(dir int, name string, flags uint64) (int, error) {
	return openat2(dir, name, flags|unix.O_NOFOLLOW, unlinked|unix.RESOLVE_BENEATH|unix.RESOLVE_NO_XDEV)
}

// OpenDir opens a directory for reading. It first adds missing permissions to a directory of this
// user, by its descriptor: its creator may have removed them.
func OpenDir(dir int, name string) (int, error) {
	fd, err := OpenIn(dir, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	if _, err := OpenUp(fd); err != nil {
		return -1, err
	}
	return Reopen(fd)
}

// Reopen opens an open directory for reading.
func Reopen(fd int) (int, error) {
	return unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// OpenUp gives the owner of an open directory all rights to it, if that is this user. It
// returns the former mode.
func OpenUp(fd int) (mode uint32, err error) {
	in, err := Stat(fd, "")
	if err != nil {
		return 0, err
	}
	if in.Mode.IsDir() && in.Bits&0o700 != 0o700 && in.UID == os.Geteuid() {
		err = Chmod(fd, in.Bits|0o700)
	}
	return in.Bits, err
}

// OpenUpTo has OpenUp open root and the directories below it down to dir, if changed since then.
// It fails with EPERM where one of another user is closed, and with EACCES where one was closed again.
func OpenUpTo(root, dir string, since time.Time) error {
	names := strings.FieldsFunc(strings.TrimPrefix(dir, root), func(r rune) bool { return r == '/' })
	fd, err := Open(root, unix.O_PATH|unix.O_DIRECTORY)
	for err == nil {
		in, stat := Stat(fd, "")
		if stat == nil && !in.Changed.Before(since) {
			_, _ = OpenUp(fd)
		}
		if len(names) == 0 {
			return unix.Close(fd)
		}
		var next int
		next, err = OpenAt(fd, names[0], unix.O_PATH|unix.O_DIRECTORY) // calls write other file systems below a root too
		unix.Close(fd)
		if err == unix.EACCES && in.UID != os.Geteuid() {
			err = unix.EPERM
		}
		fd, names = next, names[1:]
	}
	return err
}

// Chmod changes the mode of an open file, also with O_PATH, unlike fchmod(2).
func Chmod(fd int, mode uint32) error {
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}
