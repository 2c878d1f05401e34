package snapshot

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Host is the state of the host at one time.
type Host struct {
	dirs  []string
	files []string
	then  []fileID

	mu      sync.Mutex
	mounts  int  // descriptor of mountinfo, which signals changes of mounts; -1 = none
	mounted bool // it has signalled one, which it does once
}

// fileID identifies a file, or is the error of identifying it. Since inode numbers are reused, it includes the birth
// time, or the ctime if the file system has no birth time.
type fileID struct {
	major, minor uint32
	inode        uint64
	mode         uint16
	uid, gid     uint32
	born         unix.StatxTimestamp
	errno        error
}

// Take records the identity of directories, given by canonical paths, and of files, whose links it follows. The
// caller must close the Host.
func Take(dirs, files []string) *Host {
	h := &Host{dirs: dirs, files: files}
	var err error
	if h.mounts, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		h.mounts = -1
	}
	h.then = h.now()
	return h
}

// Missing returns the files that did not exist.
func (h *Host) Missing() (list []string) {
	for i, path := range h.files {
		if h.then[len(h.dirs)+i].errno == unix.ENOENT {
			list = append(list, path)
		}
	}
	return list
}

// Same reports whether the host is unchanged.
func (h *Host) Same() bool { return h.mountsSame() && slices.Equal(h.then, h.now()) }

// mountsSame polls mountinfo, on which POLLPRI signals a change (proc_pid_mounts(5)).
func (h *Host) mountsSame() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mounts < 0 || h.mounted {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(h.mounts), Events: unix.POLLPRI}}
	n, err := unix.Poll(fds, 0)
	h.mounted = n > 0
	return err == nil && n == 0
}

// Close closes mountinfo. Afterwards Same reports false.
func (h *Host) Close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mounts >= 0 {
		unix.Close(h.mounts)
		h.mounts = -1
	}
}

func (h *Host) now() []fileID {
	ids := make([]fileID, len(h.dirs)+len(h.files))
	for i := range ids {
		ids[i] = h.at(i)
	}
	return ids
}

// at returns the identity of path i, where directories come before files.
func (h *Host) at(i int) fileID {
	if i < len(h.dirs) {
		return dirAt(h.dirs[i])
	}
	return fileAt(h.files[i-len(h.dirs)])
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
