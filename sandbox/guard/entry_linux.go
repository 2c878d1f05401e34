package guard

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// beneath is how every name in a directory that calls can write is opened: one
// component, no link followed, no other file system entered.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// fileID identifies a file while it exists.
type fileID struct{ dev, ino uint64 }

func idOf(fd int) (id fileID, st unix.Stat_t, err error) {
	err = unix.Fstat(fd, &st)
	return fileID{st.Dev, st.Ino}, st, err
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
	return unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// openUp gives the owner of an open directory, if that is who we are, all rights to it.
// It returns the mode that the directory had.
func openUp(fd int) (mode uint32, err error) {
	_, st, err := idOf(fd)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0, unix.ENOTDIR
	}
	if mode = st.Mode & 0o7777; mode&0o700 != 0o700 && int(st.Uid) == os.Geteuid() {
		err = changeMode(fd, mode|0o700)
	}
	return mode, err
}

// changeMode changes the mode of what is open, also with O_PATH, which fchmod(2) refuses.
func changeMode(fd int, mode uint32) error {
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// list reads some of the names in an open directory, from its start.
func list(dir int) ([]string, error) {
	const some = 1024
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
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
