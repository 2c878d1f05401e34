package helper

import (
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
)

// Directories of the base.
const (
	baseHost  = "host"  // mounts of the machine when the helper started
	baseKept  = "kept"  // latest view, without its private file systems
	baseRoots = "roots" // what is mounted below those, each in a directory named by its index in base.private
	baseView  = "view"  // view of the call: a copy of baseKept with private file systems of its own
)

// base is the root of a helper that runs several calls. It builds a view again only if a call needs another one, or
// if one of its mounts has disappeared: the kernel unmounts from a file that is removed or replaced
// (path_resolution(7), "detach").
type base struct {
	root    int
	changes int      // descriptor of mountinfo; see changed
	covers  int      // another one, for keepCovered
	over    int      // eventfd(2), written to end keepCovered
	view    *View    // input of baseKept; nil before the first
	built   bool     // baseKept is complete
	present []string // of the covered paths of the view; see Spec.present
	private []string // paths of the mounts in baseRoots
	hidden  []string // hidden private file systems
}

// newBase makes a file system with these directories the root of the mount namespace.
func newBase() (*base, error) {
	if err := unix.Chroot("/"); err != nil { // if that is refused, so is each view
		return nil, err
	}
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fs)
	if err := errors.Join(unix.FsconfigSetString(fs, "mode", "700"), unix.FsconfigSetString(fs, "size", "64k"), unix.FsconfigCreate(fs)); err != nil {
		return nil, err
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrQuiet)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{baseHost, baseKept, baseRoots, baseView} {
		err = errors.Join(err, unix.Mkdirat(root, dir, 0o700))
	}
	const mounts = "/proc/self/mountinfo"
	changes, err1 := unix.Open(mounts, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	covers, err2 := unix.Open(mounts, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	over, err3 := unix.Eventfd(0, unix.EFD_CLOEXEC)
	const at = "/proc" // a directory that always exists
	err = errors.Join(err, err1, err2, err3)
	if err = errors.Join(err, unix.MoveMount(root, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)); err != nil {
		return nil, err
	}
	if err = errors.Join(unix.Fchdir(root), unix.PivotRoot(".", baseHost)); err != nil {
		return nil, errors.Join(err, unix.Chdir("/"), unix.Unmount(at, unix.MNT_DETACH))
	}
	return &base{root: root, changes: changes, covers: covers, over: over}, nil
}

// changed reports whether a mount was added or removed since its previous call (proc_pid_mounts(5)).
func (b *base) changed() bool {
	fds := []unix.PollFd{{Fd: int32(b.changes), Events: unix.POLLPRI}}
	n, err := unix.Poll(fds, 0)
	return err != nil || n != 0
}

func (b *base) enter(s *Spec, handed []int) error {
	if s.Kept && b.view == nil {
		return errGarbled
	}
	if s.Kept {
		s.View = *b.view
	}
	if !b.changed() && b.built && s.Kept {
		if err := b.use(s); err != nil || s.areClosed(b.present) {
			return err
		}
		if err := b.leave(); err != nil {
			return stage("unmount the view", err)
		}
	}
	if err := b.build(s, handed); err != nil {
		return err
	}
	if err := b.use(s); err != nil {
		return err
	}
	b.present = s.present()
	return nil
}

// use makes a copy of baseKept the root of this process.
func (b *base) use(s *Spec) error {
	terminal := takeTerminal("/"+baseHost, s.Terminal)
	if err := b.enterCopy(baseKept, baseView); err != nil {
		return stage("copy the view", err)
	}
	if err := b.fill(s, terminal); err != nil {
		return err
	}
	b.changed()
	return nil
}

// enterCopy makes a copy of a mount tree the root of this process.
func (b *base) enterCopy(of, at string) error {
	tree, err := unix.OpenTree(b.root, of, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return errors.Join(
		unix.MoveMount(tree, "", b.root, at, unix.MOVE_MOUNT_F_EMPTY_PATH),
		unix.Fchdir(tree),
		unix.Chroot("."))
}

func (b *base) leave() error {
	if b.changed() { // during the call
		b.built = false
	}
	err := errors.Join(b.exit(), unix.Unmount(baseView, unix.MNT_DETACH))
	b.changed()
	return err
}

func (b *base) exit() error { return errors.Join(unix.Fchdir(b.root), unix.Chroot(".")) }

// build makes baseKept the view of a call, and moves aside the mounts in its private file systems.
func (b *base) build(s *Spec, handed []int) error {
	if err := b.forget(); err != nil {
		return stage("unmount the view before", err)
	}
	if err := b.enterCopy(baseHost, baseKept); err != nil {
		return stage("copy the machine's mounts", err)
	}
	placeholder, err := takePlaceholder(s.Terminal)
	if err != nil {
		return err
	}
	attached, err := buildView(s, handed, placeholder)
	if err != nil {
		return err
	}
	for i, path := range attached {
		if slices.ContainsFunc(attached[i+1:], func(dir string) bool { return paths.Within(path, dir) }) {
			continue // another mount covers it
		}
		if err := b.putAside(path); err != nil {
			return stage("keep "+path, err)
		}
	}
	private := privateDirs()
	b.hidden = hiddenOf(private, s.Hide)
	if s.Terminal {
		private = append(private, console)
	}
	for _, path := range slices.Backward(private) {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return stage("unmount "+path, err)
		}
	}
	view := s.View
	b.view, b.built = &view, true
	return b.exit()
}

// takePlaceholder returns the console for building a view, which leaves a file for fill.
func takePlaceholder(terminal bool) ([]tree, error) {
	if !terminal {
		return nil, nil
	}
	t, err := take("/dev/null", false)
	t.path = console
	return []tree{t}, err
}

func (b *base) forget() error {
	var err error
	for i := range b.private {
		name := baseRoots + "/" + strconv.Itoa(i)
		err = errors.Join(err, unix.Unmount(name, unix.MNT_DETACH), os.Remove(name))
	}
	b.private = nil
	// Nothing is mounted there before the first view or after an early failure.
	return errors.Join(err, except(unix.Unmount(baseKept, unix.MNT_DETACH), unix.EINVAL))
}

// putAside moves the mount at a path to baseRoots if it is in a private file system. Attached paths are in mount
// order, so mounts below it move with it.
func (b *base) putAside(path string) error {
	within := func(dir string) bool { return paths.Within(path, dir) }
	if !slices.ContainsFunc(privateDirs(), within) || slices.ContainsFunc(b.private, within) {
		return nil
	}
	at, err := locate(path)
	if errors.Is(err, unix.EACCES) {
		return nil // below a hidden directory
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	name := baseRoots + "/" + strconv.Itoa(len(b.private))
	if err := b.makeMountPoint(at, name); err != nil {
		return err
	}
	b.private = append(b.private, path)
	return unix.MoveMount(at, "", b.root, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func (b *base) makeMountPoint(like int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(like, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.Mkdirat(b.root, name, 0o700)
	}
	return unix.Mknodat(b.root, name, unix.S_IFREG|0o600, 0)
}

// fill mounts new private file systems in a copy of the view.
func (b *base) fill(s *Spec, terminal []tree) error {
	var trees []tree
	for i, path := range b.private {
		t, err := takeAt(b.root, baseRoots+"/"+strconv.Itoa(i), true)
		if err != nil {
			return stage("take "+path, err)
		}
		t.path = path
		trees = append(trees, t)
	}
	if err := errors.Join(mountPrivate(s.TmpBytes), mountBelowDev()); err != nil {
		return err
	}
	for _, t := range append(terminal, trees...) {
		if err := t.attach(); err != nil {
			return err
		}
	}
	return s.hideAll(b.hidden)
}

func hiddenOf(dirs, hide []string) (hidden []string) {
	for _, path := range hide {
		if real, err := paths.Existing(path); err == nil && slices.Contains(dirs, real) {
			hidden = append(hidden, real)
		}
	}
	return hidden
}

func (v *View) covered() []string { return slices.Concat(v.Hide, v.Masks, v.Protect) }

// areClosed reports whether each of these paths that exists is a mount point. It must be called in the view. A mount on
// a file moves when the file is renamed; another hard link under the old name is not covered.
func (v *View) areClosed(list []string) bool {
	return !slices.ContainsFunc(list, func(path string) bool {
		attributes, err := attributesOf(path)
		open := err == nil && attributes&unix.STATX_ATTR_MOUNT_ROOT == 0
		return open || v.unreachable(path, err) != nil
	})
}

// present returns the paths that must be covered, except those that the daemon did not find and that do not exist in
// the view, where it must be called. One that exists for the daemon alone may just be about to get its old name again.
func (s *Spec) present() []string {
	return slices.DeleteFunc(s.covered(), func(path string) bool {
		_, err := attributesOf(path)
		return errors.Is(err, unix.ENOENT) && slices.Contains(s.Missing, path)
	})
}

func attributesOf(path string) (uint64, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, 0, &st)
	return st.Attributes, err
}

// privateDirs returns the mount points of a view's private file systems, in mount order.
func privateDirs() []string {
	var dirs []string
	for _, d := range privateMounts(0) {
		if isDir(d.path) {
			dirs = append(dirs, d.path)
		}
	}
	return append(dirs, "/dev/pts", "/dev/shm")
}
