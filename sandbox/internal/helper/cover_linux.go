package helper

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
)

// coverFile covers hidden files. Its mode lets no user open it.
const coverFile = "/dev/.cover"

// Cover is its content. It is not empty, because some programs do not open an empty file: npm pack would put it into
// its archive instead of failing.
const Cover = "\n"

func (v *View) hideAll(paths []string) error {
	for _, path := range paths {
		if err := v.hide(path); err != nil {
			return stage("hide "+path, err)
		}
	}
	return nil
}

// hide covers a file or directory. An unreachable path needs no cover.
func (v *View) hide(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return v.unreachable(path, err)
	}
	defer unix.Close(fd)
	return cover(fd)
}

// unreachable returns nil if err means that calls cannot open a hidden path either. Below a root they could open a
// directory without permissions by restoring them, unless it belongs to another user.
func (v *View) unreachable(path string, err error) error {
	open := func(r Root) bool { return paths.Below(path, r.Path) }
	below := func(dir string) bool { return paths.Below(path, dir) }
	apart := !slices.ContainsFunc(v.Roots, open) && !slices.ContainsFunc(v.Opened, below) || slices.ContainsFunc(slices.Concat(v.Hide, v.Masks), below)
	if apart || errors.Is(err, unix.EACCES) && closedByOther(path) {
		err = except(err, unix.EACCES)
	}
	return except(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP)
}

// closedByOther reports whether the directory that makes a path unreachable belongs to another user, so that calls
// cannot open it.
func closedByOther(path string) bool {
	for dir := paths.Above(path); ; dir = paths.Above(dir) {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != unix.EACCES {
			return err == nil && int(st.Uid) != unix.Geteuid()
		}
	}
}

// maskAll covers paths below the roots. A missing path needs no cover; one that another call has replaced by a link
// is an error.
func maskAll(paths []string) error {
	for _, path := range paths {
		fd, err := locate(path)
		if err == nil {
			err = cover(fd)
			unix.Close(fd)
		}
		if except(err, unix.ENOENT, unix.ENOTDIR) != nil {
			return stage("mask "+path, err)
		}
	}
	return nil
}

// cover mounts something that cannot be opened on the open file or directory.
func cover(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.Mount("tmpfs", fmt.Sprintf("/proc/self/fd/%d", fd), "tmpfs",
			flagsPlain|unix.MS_NOEXEC|unix.MS_RDONLY, "mode=000,size=4k")
	}
	file, err := takeLocked(coverFile)
	if err != nil {
		return err
	}
	defer unix.Close(file.fd)
	return unix.MoveMount(file.fd, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
