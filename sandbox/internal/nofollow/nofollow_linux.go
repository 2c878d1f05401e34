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

// Lstat examines a path. It follows links except in the last component.
func Lstat(path string) (Info, error) { return Stat(unix.AT_FDCWD, path) }

// Stat examines a name in an open directory, or the open file if name is "".
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

// Stamp returns a time that is not after the one that a file changed now would get: file systems use a clock that
// advances in ticks, behind time.Now (CLOCK_REALTIME_COARSE, clock_gettime(2)). It returns the zero time if it cannot
// read that clock.
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

// openat2 sets close-on-exec and retries on EINTR.
func openat2(dir int, path string, flags, resolve uint64) (int, error) {
	for {
		fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve})
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// Open opens a path of any length without following links.
func Open(path string, flags uint64) (fd int, err error) {
	const most = 4000 // less than PATH_MAX
	dir := unix.AT_FDCWD
	for len(path) > most {
		i := strings.LastIndexByte(path[:most], '/')
		if i < 0 { // no file system has names this long
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
		dir, path = fd, strings.TrimLeft(path[i+1:], "/") // a leading slash would start at the root
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

// OpenAt opens a name in an open directory. It may cross mount points.
func OpenAt(dir int, name string, flags uint64) (int, error) {
	return openat2(dir, name, flags|unix.O_NOFOLLOW, unlinked|unix.RESOLVE_BENEATH)
}

// OpenIn opens a name in a directory that calls can write. It leaves neither the directory nor its file system.
func OpenIn(dir int, name string, flags uint64) (int, error) {
	return openat2(dir, name, flags|unix.O_NOFOLLOW, unlinked|unix.RESOLVE_BENEATH|unix.RESOLVE_NO_XDEV)
}

// OpenDir opens a directory for reading. If the directory belongs to this user, OpenDir first adds missing
// permissions through the descriptor, since its creator may have removed them.
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

// OpenUp gives the owner of an open directory all permissions if that is this user, and returns the previous mode.
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

// OpenUpTo applies OpenUp to root and the directories below it down to dir, where they have changed since a time. It
// returns EPERM if another user's directory is not accessible, and EACCES if permissions were removed again.
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
		next, err = OpenAt(fd, names[0], unix.O_PATH|unix.O_DIRECTORY) // calls may also write to other file systems below root
		unix.Close(fd)
		if err == unix.EACCES && in.UID != os.Geteuid() {
			err = unix.EPERM
		}
		fd, names = next, names[1:]
	}
	return err
}

// Chmod changes the mode of an open file. Unlike fchmod(2), it also accepts O_PATH descriptors.
func Chmod(fd int, mode uint32) error {
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}
