package helper

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
)

const (
	attrLocked = unix.MOUNT_ATTR_RDONLY | attrQuiet
	attrQuiet  = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV

	flagsPlain = unix.MS_NOSUID | unix.MS_NODEV
)

// covered lists the host directories that private ones cover. A root below one of them is mounted again.
var covered = []string{"/tmp", "/var/tmp", "/run", "/dev"}

// Covered reports whether the view hides path unless path is one of the roots.
func Covered(path string) bool {
	return slices.ContainsFunc(covered, func(dir string) bool { return paths.Within(path, dir) })
}

// buildView turns the mount namespace of the calling process into that of a call: everything read-only, private /tmp,
// /var/tmp, /run, /dev and /proc, the roots mounted again, the hidden paths covered. It returns the paths of the
// mounts, in order.
//
// One recursive mount_setattr(2) makes the host's tree read-only, instead of a remount for each mount. It does not
// affect copies taken before.
func buildView(s *Spec, handed []int, console []tree) (attached []string, err error) {
	roots, err := takeRoots(s.Roots)
	if err != nil {
		return nil, err
	}
	caches, err := takeCaches(s.Caches, handed)
	if err != nil {
		return nil, err
	}
	nodes, err := takeNodes()
	if err != nil {
		return nil, err
	}
	files := takeSockets(s.Sockets)
	if len(s.Ports) == 0 {
		files = append(files, takeResolver()...)
	}
	if err := setAttr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, attrLocked); err != nil {
		return nil, stage("make / read-only", err)
	}
	if err := s.mountOwn(append(nodes, console...)); err != nil {
		return nil, err
	}
	if err := attachCaches(caches); err != nil {
		return nil, err
	}
	if len(s.Ports) > 0 {
		resolver, err := ownResolver()
		if err != nil {
			return nil, err
		}
		files = append(files, resolver...)
	}
	for _, t := range slices.Concat(files, roots) {
		if err := t.attach(); err != nil {
			return nil, err
		}
	}
	for _, t := range slices.Concat(caches, files, roots) {
		attached = append(attached, t.path)
	}
	return attached, s.close()
}

// mountOwn mounts what each call has for itself: directories for temporary files, /dev with these nodes, and /proc.
func (s *Spec) mountOwn(nodes []tree) error {
	if err := mountPrivate(s.TmpBytes); err != nil {
		return err
	}
	if err := buildDev(nodes); err != nil || !s.apart() {
		return err
	}
	return buildProc()
}

// close covers what the call must not change or open.
func (s *Spec) close() error {
	if err := pinAll(s.View); err != nil {
		return err
	}
	if err := protectAll(s.Protect); err != nil {
		return err
	}
	if err := maskAll(s.Masks); err != nil {
		return err
	}
	if err := s.hideAll(s.Hide); err != nil {
		return err
	}
	return stage("make /dev read-only", setAttr(unix.AT_FDCWD, "/dev", 0, unix.MOUNT_ATTR_RDONLY))
}

func takeRoots(roots []Root) ([]tree, error) {
	var trees []tree
	for _, r := range byDepth(roots) {
		attr := uint64(attrQuiet)
		if !r.Writable {
			attr = attrLocked
		}
		t, err := take(r.Path, true)
		if err == nil {
			err = r.mustBe(t.fd)
		}
		if err != nil {
			return nil, stage("open root "+r.Path, err)
		}
		if err := setAttr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr); err != nil {
			return nil, stage("prepare root "+r.Path, err)
		}
		trees = append(trees, t)
	}
	return trees, nil
}

func byDepth(roots []Root) []Root {
	roots = slices.Clone(roots)
	slices.SortStableFunc(roots, func(a, b Root) int {
		return strings.Count(a.Path, "/") - strings.Count(b.Path, "/")
	})
	return roots
}

// mustBe returns an error if the directory does not have the root's identity.
func (r Root) mustBe(fd int) error {
	if r.Is == "" {
		return nil
	}
	is, err := Identity(fd)
	if err == nil && is != r.Is {
		err = errors.New("the directory is not the one that was allowed")
	}
	return err
}

// Identity returns a string that identifies an open file among all existing ones.
func Identity(fd int) (string, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return strconv.FormatUint(st.Dev, 10) + ":" + strconv.FormatUint(st.Ino, 10), err
}

var devices = [...]string{"null", "zero", "full", "random", "urandom", "tty"}

func takeNodes() ([]tree, error) {
	var nodes []tree
	for _, name := range devices {
		t, err := take("/dev/"+name, false)
		if err != nil {
			return nil, stage("open /dev/"+name, err)
		}
		// Root could change its mode, for the machine. A device can be written nevertheless.
		if err := setAttr(t.fd, "", unix.AT_EMPTY_PATH, unix.MOUNT_ATTR_RDONLY); err != nil {
			return nil, stage("make /dev/"+name+" read-only", err)
		}
		nodes = append(nodes, t)
	}
	return nodes, nil
}

const console = "/dev/console"

// takeTerminal takes the terminal of the call, if it has one. host is the directory with the machine's root.
// ttyname(3) searches /dev and finds the terminal as the console.
func takeTerminal(host string, has bool) []tree {
	if !has {
		return nil
	}
	name, err := os.Readlink(host + "/proc/self/fd/0")
	if err != nil || !strings.HasPrefix(name, "/dev/") {
		return nil // only ttyname(3) needs it
	}
	t, err := take(host+name, false)
	if err != nil {
		return nil
	}
	t.path = console
	return []tree{t}
}

func resolverBelowRun() (path string, ok bool) {
	path, err := paths.Existing("/etc/resolv.conf")
	return path, err == nil && strings.HasPrefix(path, "/run/")
}

func takeResolver() []tree {
	path, ok := resolverBelowRun()
	if !ok {
		return nil
	}
	t, err := takeLocked(path)
	if err != nil {
		return nil // then names are not resolved, which is safe
	}
	return []tree{t}
}

// takeSockets takes the sockets of the machine that a private directory would hide.
func takeSockets(sockets []string) (list []tree) {
	for _, path := range sockets {
		if !Covered(path) {
			continue
		}
		if t, err := takeLocked(path); err == nil {
			list = append(list, t) // a missing one cannot be reached either
		}
	}
	return list
}

const shmBytes = 256 << 20

// perFile is the number of bytes for each allowed file. An empty file takes about half as much of the kernel's
// memory.
const perFile = 2048

type privateMount struct {
	path, options string
	flags         uintptr
}

func privateMounts(tmpBytes uint64) []privateMount {
	options := "mode=1777"
	if tmpBytes > 0 {
		options = "mode=1777,size=" + strconv.FormatUint(tmpBytes, 10) + ",nr_inodes=" + strconv.FormatUint(tmpBytes/perFile+1, 10)
	}
	return []privateMount{
		{"/tmp", options, flagsPlain},
		{"/var/tmp", options, flagsPlain},
		{"/run", "mode=755,size=1m", flagsPlain | unix.MS_NOEXEC},
	}
}

func mountPrivate(tmpBytes uint64) error {
	for _, d := range privateMounts(tmpBytes) {
		if !isDir(d.path) { // missing, or a link to another one of them
			continue
		}
		if err := unix.Mount("tmpfs", d.path, "tmpfs", d.flags, d.options); err != nil {
			return stage("mount "+d.path, err)
		}
	}
	return nil
}

func buildDev(nodes []tree) error {
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return stage("mount /dev", err)
	}
	for _, n := range nodes {
		if err := n.attach(); err != nil {
			return err
		}
	}
	for _, l := range [...][2]string{
		{"/proc/self/fd", "/dev/fd"},
		{"/proc/self/fd/0", "/dev/stdin"},
		{"/proc/self/fd/1", "/dev/stdout"},
		{"/proc/self/fd/2", "/dev/stderr"},
		{"pts/ptmx", "/dev/ptmx"},
	} {
		if err := os.Symlink(l[0], l[1]); err != nil {
			return stage("fill /dev", err)
		}
	}
	if err := errors.Join(os.Mkdir("/dev/pts", 0o755), os.Mkdir("/dev/shm", 0o1777), os.WriteFile(coverFile, []byte(Cover), 0)); err != nil {
		return stage("fill /dev", err)
	}
	return mountBelowDev()
}

func mountBelowDev() error {
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,max=512"); err != nil {
		return stage("mount /dev/pts", err)
	}
	options := "mode=1777,size=" + strconv.Itoa(shmBytes) + ",nr_inodes=16k"
	return stage("mount /dev/shm", unix.Mount("tmpfs", "/dev/shm", "tmpfs", flagsPlain, options))
}

// procLocked returns the parts of /proc that are the machine's and may be written: root's files belong to root here too,
// and some drivers ask for no capability.
func procLocked() (list []string, err error) {
	entries, err := os.ReadDir("/proc")
	for _, e := range entries {
		path, locked := "/proc/"+e.Name(), e.IsDir()
		if _, notProcess := strconv.Atoi(e.Name()); notProcess == nil {
			continue
		}
		if e.Type().IsRegular() {
			var st unix.Stat_t
			locked = unix.Lstat(path, &st) == nil && st.Mode&0o222 != 0
		}
		if locked {
			list = append(list, path)
		}
	}
	return list, err
}

// buildProc mounts the /proc of the new PID namespace. The kernel only allows that if no part of the outer /proc is
// masked, unlike in default containers.
func buildProc() error {
	if err := unix.Mount("proc", "/proc", "proc", flagsPlain|unix.MS_NOEXEC, ""); err != nil {
		return stage("mount /proc", err)
	}
	list, err := procLocked()
	for _, path := range list {
		t, bad := takeLocked(path)
		if bad == nil {
			bad = t.attach()
		}
		err = errors.Join(err, bad)
	}
	return stage("make the machine's part of /proc read-only", err)
}

func except(err error, harmless ...error) error {
	if slices.ContainsFunc(harmless, func(h error) bool { return errors.Is(err, h) }) {
		return nil
	}
	return err
}

func setAttr(fd int, path string, flags uint, set uint64) error {
	return unix.MountSetattr(fd, path, flags, &unix.MountAttr{Attr_set: set})
}

func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
