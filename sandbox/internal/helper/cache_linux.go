package helper

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// serveOverlays mounts overlays and sends each to the daemon. Nothing else runs in the namespaces of this process.
// The mounts are not attached; only the descriptors keep them.
func serveOverlays(list []Overlay) int {
	for _, o := range list {
		e, fds := Event{Kind: EventOverlay}, []int(nil)
		if fd, err := o.mount(); err != nil {
			e = failure(err)
		} else {
			fds = []int{fd}
		}
		if err := unix.Sendmsg(ControlFD, e.Encode(), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
			return 125
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	return 0
}

// mount mounts the overlay, with attributes that require no privilege ("userxattr").
func (o Overlay) mount() (int, error) {
	fsfd, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, stage("make an overlay", err)
	}
	defer unix.Close(fsfd)
	if err := o.configure(fsfd); err != nil {
		return -1, stage("make an overlay over "+o.Lower, err)
	}
	fd, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, attrQuiet)
	if err != nil {
		return -1, stage("make an overlay over "+o.Lower, err)
	}
	// As every call will do. Kernels before 6.15 only copy attached mounts.
	again, err := cloneTree(fd)
	if err != nil {
		unix.Close(fd)
		return -1, stage("share an overlay between calls, for which Linux 6.15 is needed", err)
	}
	unix.Close(again)
	return fd, nil
}

func (o Overlay) configure(fsfd int) error {
	for _, dir := range [][2]string{{"lowerdir", o.Lower}, {"upperdir", o.Upper}, {"workdir", o.Work}} {
		// A path would have to be escaped and shorter than 256 bytes.
		fd, err := locate(dir[1])
		if err != nil {
			return stage("open "+dir[1], err)
		}
		defer unix.Close(fd)
		if err := unix.FsconfigSetString(fsfd, dir[0], fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil {
			return err
		}
	}
	if err := unix.FsconfigSetFlag(fsfd, "userxattr"); err != nil {
		return err
	}
	return unix.FsconfigCreate(fsfd)
}

func cloneTree(fd int) (int, error) {
	return unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
}

// takeCaches returns the caches, parents first.
func takeCaches(caches []Cache, handed []int) ([]tree, error) {
	var trees []tree
	for _, c := range caches {
		var fd int
		var err error
		switch {
		case c.From != "":
			fd, err = takePrivate(c.From)
		case len(handed) == 0:
			err = errGarbled
		default:
			fd, err = cloneTree(handed[0])
			handed = handed[1:]
		}
		if err != nil {
			return nil, stage("take the cache "+c.Path, err)
		}
		trees = append(trees, tree{fd: fd, path: c.Path, dir: true})
	}
	slices.SortStableFunc(trees, func(a, b tree) int { return strings.Count(a.path, "/") - strings.Count(b.path, "/") })
	return trees, nil
}

func takePrivate(dir string) (int, error) {
	t, err := take(dir, false)
	if err != nil {
		return -1, err
	}
	return t.fd, setAttr(t.fd, "", unix.AT_EMPTY_PATH, attrQuiet)
}

// attachCaches mounts the caches in the view, unless the directory has changed.
func attachCaches(trees []tree) error {
	for _, t := range trees {
		if err := except(t.attach(), unix.ENOENT, unix.ENOTDIR, unix.ELOOP); err != nil {
			return err
		}
	}
	return nil
}

// writable returns the directories in which a call may write on the host or in its caches.
func (s *View) writable() []Root {
	roots := slices.Clone(s.Roots)
	for _, c := range s.Caches {
		roots = append(roots, Root{Path: c.Path, Writable: true})
	}
	return roots
}
