package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// world is what a sandbox was made from, as far as it can change meanwhile.
type world struct {
	folders []string // canonical, entered without following links
	files   []string // followed to where they lead
	then    []place
	mounts  int // an open mountinfo, which tells when a mount comes or goes; -1 = none
}

// place is what a path led to, or why it led nowhere. The number of a deleted
// inode is soon another's, and a cover over the deleted one is gone: born tells
// them apart, or the last change where the file system keeps no births.
type place struct {
	major, minor uint32
	inode        uint64
	mode         uint16
	uid, gid     uint32
	born         unix.StatxTimestamp
	errno        error
}

// lookAround remembers what a sandbox will be made from, before it is made.
func lookAround(c Command) *world {
	p := c.Profile
	folders := append([]string{c.Dir}, p.Write...)
	if p.Workspace != "" {
		folders = append(folders, p.Workspace)
	}
	return look(folders, slices.Concat([]string{c.Argv[0], "/etc/resolv.conf"}, p.Hide, p.fixed(), pathsOf(p.masks().Hidden), p.Sockets))
}

// look remembers where folders and files are.
func look(folders, files []string) *world {
	w := &world{folders: folders, files: files}
	var err error
	if w.mounts, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		w.mounts = -1
	}
	w.then = w.now()
	return w
}

// same reports whether a sandbox made now would be made from the same.
func (w *world) same() bool { return w.mountsSame() && slices.Equal(w.then, w.now()) }

// mountsSame asks the kernel: POLLPRI on mountinfo marks a change (proc_pid_mounts(5)).
func (w *world) mountsSame() bool {
	fds := []unix.PollFd{{Fd: int32(w.mounts), Events: unix.POLLPRI}}
	n, err := unix.Poll(fds, 0)
	return w.mounts >= 0 && err == nil && n == 0
}

func (w *world) close() {
	if w != nil && w.mounts >= 0 {
		unix.Close(w.mounts)
		w.mounts = -1
	}
}

func (w *world) now() []place {
	places := make([]place, len(w.folders)+len(w.files))
	for i := range places {
		places[i] = w.at(i)
	}
	return places
}

// at looks at one place, the folders before the files.
func (w *world) at(i int) place {
	if i < len(w.folders) {
		return folderAt(w.folders[i])
	}
	return fileAt(w.files[i-len(w.folders)])
}

func folderAt(path string) place {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return place{errno: err}
	}
	defer unix.Close(fd)
	return placeOf(fd, "", unix.AT_EMPTY_PATH)
}

func fileAt(path string) place { return placeOf(unix.AT_FDCWD, path, 0) }

func placeOf(dir int, path string, flags int) place {
	var st unix.Statx_t
	if err := unix.Statx(dir, path, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return place{errno: err}
	}
	p := place{
		major: st.Dev_major, minor: st.Dev_minor, inode: st.Ino,
		mode: st.Mode, uid: st.Uid, gid: st.Gid, born: st.Btime,
	}
	if st.Mask&unix.STATX_BTIME == 0 {
		p.born = st.Ctime
	}
	return p
}
