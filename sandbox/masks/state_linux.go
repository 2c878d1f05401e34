package masks

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// stateOf is the state of what is at a path, no link followed at its end.
func stateOf(path string) state {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return state{}
	}
	return state{
		file: fmt.Sprintf("%d:%d:%d:%d.%d", st.Dev_major, st.Dev_minor, st.Ino, st.Btime.Sec, st.Btime.Nsec),
		at:   fmt.Sprintf("%d.%d:%d", st.Ctime.Sec, st.Ctime.Nsec, st.Size),
		// A directory has a link from each one in it.
		links: st.Nlink, special: st.Mode&unix.S_IFMT != unix.S_IFREG && st.Mode&unix.S_IFMT != unix.S_IFDIR,
	}
}

// openQuietly opens a regular file, without following a link or waiting.
func openQuietly(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.New("not a regular file")
	}
	return f, nil
}
