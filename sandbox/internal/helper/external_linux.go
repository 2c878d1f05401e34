package helper

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
	"golang.org/x/sys/unix"
)

// In tier A-bwrap, bwrap creates the namespaces and the view, and starts the helper in them. The helper cannot change
// these. It verifies the namespaces and mounts, fails on any mismatch, and then works as in its own namespaces.

// streams is the number of leading descriptors for the command if a specification is External.
const streams = 3

// takeStreams replaces bwrap's streams by those of the call, and makes the terminal the controlling one. It returns
// the remaining descriptors.
func takeStreams(s *Spec, handed []int) ([]int, error) {
	if len(handed) < streams {
		return nil, stage("take the streams", errGarbled)
	}
	for to, fd := range handed[:streams] {
		if err := errors.Join(unix.Dup3(fd, to, 0), unix.SetNonblock(to, false)); err != nil { // as os/exec passes them
			return nil, stage("take the streams", err)
		}
		unix.Close(fd)
	}
	if s.Terminal {
		if err := unix.IoctlSetInt(0, unix.TIOCSCTTY, 0); err != nil {
			return nil, stage("take the terminal", err)
		}
	}
	return handed[streams:], nil
}

// checkExternal verifies the namespaces and the view, and that the process has no capabilities.
func checkExternal(s *Spec) error {
	if err := checkNamespaces(s); err != nil {
		return stage("look at the namespaces", err)
	}
	if err := checkCapabilities(); err != nil {
		return stage("look at the capabilities", err)
	}
	mounts, err := readMountTable()
	if err != nil {
		return stage("look at the view", err)
	}
	return checkView(s, mounts)
}

// NamespaceKinds returns the names of the call's namespaces in /proc/PID/ns (namespaces(7)).
func (s *Spec) NamespaceKinds() []string {
	kinds := []string{"user", "mnt", "pid", "ipc", "uts"}
	if s.Loopback {
		kinds = append(kinds, "net")
	}
	return kinds
}

func checkNamespaces(s *Spec) error {
	if os.Getpid() != 1 {
		return errors.New("the helper is not the first process of a namespace")
	}
	kinds := s.NamespaceKinds()
	if len(s.Outside) != len(kinds) {
		return errGarbled
	}
	for i, kind := range kinds {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return err
		}
		if own == s.Outside[i] {
			return fmt.Errorf("the %s namespace is the machine's", kind)
		}
	}
	return nil
}

func checkCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	if have != [2]unix.CapUserData{} {
		return errors.New("bwrap has left capabilities")
	}
	return nil
}

// checkView verifies every security-relevant part of the view. It follows no links, and each path must be what the
// daemon saw there, since a concurrent call could briefly have replaced it by a link.
func checkView(s *Spec, mounts mountTable) error {
	if err := mounts.checkWritable(s); err != nil {
		return stage("make / read-only", err)
	}
	locked, err := procLocked()
	for _, path := range locked {
		err = errors.Join(err, mounts.checkAt(Root{Path: path}))
	}
	if err != nil {
		return stage("make the machine's part of /proc read-only", err)
	}
	for _, r := range s.Roots {
		if err := mounts.checkAt(r); err != nil {
			return stage("open root "+r.Path, err)
		}
	}
	fixed := map[string]bool{}
	for _, r := range s.Fixed {
		fixed[r.Path] = true
		if err := mounts.checkAt(r); except(err, unix.ENOENT, unix.ENOTDIR) != nil {
			return stage("fasten "+r.Path, err)
		}
	}
	for _, path := range s.Protect {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err == nil && !fixed[path] {
			return stage("protect "+path, errors.New("it came while the sandbox was made"))
		}
	}
	return mounts.checkCovers(s)
}

// checkCovers verifies that what is hidden or masked is covered or unreachable.
func (m mountTable) checkCovers(s *Spec) error {
	for _, path := range s.Hide {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err == nil {
			err = m.checkHidden(fd)
		}
		if err = s.unreachable(path, err); err != nil {
			return stage("hide "+path, err)
		}
	}
	for _, path := range s.Masks {
		fd, err := locate(path)
		if err == nil {
			err = m.checkHidden(fd)
		}
		if except(err, unix.ENOENT, unix.ENOTDIR) != nil {
			return stage("mask "+path, err)
		}
	}
	return nil
}

// checkAt verifies that path is a mount of the recorded file, read-only if required.
func (m mountTable) checkAt(r Root) error {
	fd, err := locate(r.Path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := m.checkMount(fd, !r.Writable); err != nil {
		return err
	}
	return r.mustBe(fd)
}

// checkMount verifies that an opened path is the root of a mount.
func (m mountTable) checkMount(fd int, readOnly bool) error {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err != nil {
		return err
	}
	switch at, ok := m[st.Mnt_id]; {
	case !ok || st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0:
		return errors.New("there is no mount of its own: it was changed while the sandbox was made")
	case readOnly && at.writable:
		return errors.New("it can be written")
	}
	return nil
}

// checkHidden verifies that fd is a cover, and closes it.
func (m mountTable) checkHidden(fd int) error {
	defer unix.Close(fd)
	if err := m.checkMount(fd, true); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if st.Mode&0o777 != 0 || !dir && st.Size != int64(len(Cover)) {
		return errors.New("it is not covered")
	}
	return nil
}

// checkWritable returns an error for a reachable writable mount that is neither private nor below a writable root.
func (m mountTable) checkWritable(s *Spec) error {
	roots := s.writable()
	for id, at := range m {
		if !at.writable || private(at.point) {
			continue
		}
		in := func(r Root) bool { return r.Writable && paths.Within(at.point, r.Path) }
		locked := func(r Root) bool { return !r.Writable && paths.Below(at.point, r.Path) }
		if slices.ContainsFunc(roots, in) && !slices.ContainsFunc(s.Fixed, locked) {
			continue
		}
		var st unix.Statx_t
		if unix.Statx(unix.AT_FDCWD, at.point, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st) == nil && st.Mnt_id == id {
			return fmt.Errorf("%s can be written", at.point)
		}
	}
	return nil
}

func private(point string) bool {
	return slices.Contains([]string{"/tmp", "/var/tmp", "/run", "/proc"}, point) || paths.Below(point, "/dev")
}

type mountPoint struct {
	point    string
	writable bool
	device   uint32 // in the kernel's internal form
}

type mountTable map[uint64]mountPoint

// readMountTable returns the mounts of this process (proc_pid_mountinfo(5)).
func readMountTable() (mountTable, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMountTable(string(b))
}

func parseMountTable(text string) (mountTable, error) {
	m := mountTable{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 6 {
			return nil, fmt.Errorf("cannot read the mount %q", line)
		}
		var id uint64
		var major, minor uint32
		if _, err := fmt.Sscanf(f[0]+" "+f[2], "%d %d:%d", &id, &major, &minor); err != nil {
			return nil, fmt.Errorf("cannot read the mount %q", line)
		}
		m[id] = mountPoint{unescapeMount(f[4]), !slices.Contains(strings.Split(f[5], ","), "ro"), major<<20 | minor}
	}
	return m, nil
}

// unescapeMount reverts the kernel's escapes of spaces, tabs, newlines and backslashes.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
