package protect

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// unlinked has the kernel follow no link.
	unlinked = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	// beneath is how every name in a directory that calls can write is opened: no link
	// is followed, no other file system entered, and nothing above is reached.
	beneath = unlinked | unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV
)

// fileID identifies a file while it exists.
type fileID struct{ dev, ino uint64 }

// info is what is known of a file. No program can set the times.
type info struct {
	id      fileID
	mode    fs.FileMode
	bits    uint32
	uid     int
	size    int64
	changed time.Time // in any way
	born    time.Time // zero where the file system does not know
}

// statAt looks at a name in an open directory, or at what is open when name is empty.
func statAt(dir int, name string) (info, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags = unix.AT_EMPTY_PATH
	}
	var st unix.Statx_t
	if err := unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return info{}, err
	}
	in := info{
		id: fileID{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Ino}, mode: typeOf(uint32(st.Mode)), bits: uint32(st.Mode) & 0o7777,
		uid: int(st.Uid), size: int64(st.Size), changed: time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec)),
	}
	if st.Mask&unix.STATX_BTIME != 0 {
		in.born = time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
	}
	return in, nil
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

// openPath opens a path of any length, following no link.
func openPath(path string, flags uint64) (int, error) {
	const most = 4000 // of PATH_MAX
	dir := unix.AT_FDCWD
	for len(path) > most {
		i := strings.LastIndexByte(path[:most], '/')
		next, err := unix.Openat2(dir, path[:i], &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unlinked})
		if dir != unix.AT_FDCWD {
			unix.Close(dir)
		}
		if err != nil {
			return -1, err
		}
		dir, path = next, path[i+1:]
	}
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unlinked})
	if dir != unix.AT_FDCWD {
		unix.Close(dir)
	}
	return fd, err
}

func openIn(dir int, name string, flags uint64) (int, error) {
	return unix.Openat2(dir, name, &unix.OpenHow{Flags: flags | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: beneath})
}

// openDir opens a directory for reading. One that is closed to us although it is ours
// is opened up first, by its descriptor: whoever made it may have taken the rights away.
func openDir(dir int, name string) (int, error) {
	fd, err := openIn(dir, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	if _, err := openUp(fd); err != nil {
		return -1, err
	}
	return reopen(fd)
}

// reopen opens an open directory for reading.
func reopen(fd int) (int, error) {
	return unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// openUp gives the owner of an open directory, if that is who we are, all rights to it.
// It returns the mode that the directory had.
func openUp(fd int) (mode uint32, err error) {
	in, err := statAt(fd, "")
	if err != nil {
		return 0, err
	}
	if in.mode.IsDir() && in.bits&0o700 != 0o700 && in.uid == os.Geteuid() {
		err = changeMode(fd, in.bits|0o700)
	}
	return in.bits, err
}

// changeMode changes the mode of what is open, also with O_PATH, which fchmod(2) refuses.
func changeMode(fd int, mode uint32) error {
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// list reads some of the names in an open directory, from its start.
func list(dir int) ([]string, error) {
	const some = 1024
	fd, err := reopen(dir)
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
