package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// hostSnapshot is the state of the host that a sandbox was made from.
type hostSnapshot struct {
	dirs   []string // canonical, opened without following links
	files  []string // opened following links
	then   []fileID
	mounts int // an open mountinfo, which signals mount changes; -1 = none
}

// fileID identifies a file, or is the error of finding it. Inode numbers are reused, and a mount
// over a deleted file is gone: the birth time distinguishes them, or the ctime if the file system
// has none.
type fileID struct {
	major, minor uint32
	inode        uint64
	mode         uint16
	uid, gid     uint32
	born         unix.StatxTimestamp
	errno        error
}

// snapshotOf takes the snapshot for a command, before its sandbox is made.
func snapshotOf(c Command) *hostSnapshot {
	p := c.Profile
	dirs := append([]string{c.Dir}, p.Write...)
	if p.Workspace != "" {
		dirs = append(dirs, p.Workspace)
	}
	return takeSnapshot(dirs, slices.Concat([]string{c.Argv[0], "/etc/resolv.conf"}, p.Hide, p.fixed(), pathsOf(p.masks().Hidden), p.Sockets))
}

// takeSnapshot records the identity of directories and files.
func takeSnapshot(dirs, files []string) *hostSnapshot {
	w := &hostSnapshot{dirs: dirs, files: files}
	var err error
	if w.mounts, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		w.mounts = -1
	}
	w.then = w.now()
	return w
}

// same reports whether the host is unchanged.
func (w *hostSnapshot) same() bool { return w.mountsSame() && slices.Equal(w.then, w.now()) }

// mountsSame polls mountinfo: POLLPRI marks a change (proc_pid_mounts(5)).
func (w *hostSnapshot) mountsSame() bool {
	fds := []unix.PollFd{{Fd: int32(w.mounts), Events: unix.POLLPRI}}
	n, err := unix.Poll(fds, 0)
	return w.mounts >= 0 && err == nil && n == 0
}

func (w *hostSnapshot) close() {
	if w != nil && w.mounts >= 0 {
		unix.Close(w.mounts)
		w.mounts = -1
	}
}

func (w *hostSnapshot) now() []fileID {
	ids := make([]fileID, len(w.dirs)+len(w.files))
	for i := range ids {
		ids[i] = w.at(i)
	}
	return ids
}

// at identifies path i, counting directories before files.
func (w *hostSnapshot) at(i int) fileID {
	if i < len(w.dirs) {
		return dirAt(w.dirs[i])
	}
	return fileAt(w.files[i-len(w.dirs)])
}

func dirAt(path string) fileID {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return fileID{errno: err}
	}
	defer unix.Close(fd)
	return fileIDOf(fd, "", unix.AT_EMPTY_PATH)
}

func fileAt(path string) fileID { return fileIDOf(unix.AT_FDCWD, path, 0) }

func fileIDOf(dir int, path string, flags int) fileID {
	var st unix.Statx_t
	if err := unix.Statx(dir, path, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return fileID{errno: err}
	}
	p := fileID{
		major: st.Dev_major, minor: st.Dev_minor, inode: st.Ino,
		mode: st.Mode, uid: st.Uid, gid: st.Gid, born: st.Btime,
	}
	if st.Mask&unix.STATX_BTIME == 0 {
		p.born = st.Ctime
	}
	return p
}
