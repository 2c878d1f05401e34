package helper

import (
	"errors"
	"os"
	"slices"
	"strconv"

	"github.com/toold/toold/internal/paths"
	"golang.org/x/sys/unix"
)

// BwrapArguments returns the arguments for bwrap(1), 0.8 or later, to create the namespaces and the view of a
// specification that is External: the view of buildView as far as bwrap supports it. It records the identities of
// paths in the specification for the helper to verify, so it must be called once for a Spec.
//
// console is the terminal of the call, or "". cover returns the descriptor, by its number in bwrap, of a file that
// contains Cover; bwrap consumes one for each hidden file.
//
// bwrap resolves the paths later, and follows links; checkView verifies the result.
func (s *Spec) BwrapArguments(console string, cover func() (fd int, err error)) ([]string, error) {
	if err := s.lookAtRoots(); err != nil {
		return nil, err
	}
	a := s.bwrapNamespaces()
	a = append(a, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
	if console != "" {
		a = append(a, "--dev-bind-try", console, "/dev/console")
	}
	locked, err := procLocked()
	if err != nil {
		return nil, err
	}
	for _, path := range locked { // the machine's; its contents depend on the reader
		a = append(a, "--ro-bind-try", path, path)
	}
	a = append(append(a, s.bwrapPrivate()...), s.bwrapContents()...)
	for _, r := range byDepth(slices.Concat(s.Roots, s.pins())) {
		how := "--bind-try" // the helper detects what is missing
		if !r.Writable {
			how = "--ro-bind-try"
		}
		a = append(a, how, s.source(r.Path), r.Path)
	}
	for _, r := range s.Fixed {
		if !r.Writable {
			a = append(a, "--ro-bind-try", s.source(r.Path), r.Path)
		}
	}
	hidden, err := s.bwrapHidden(cover)
	if err != nil {
		return nil, err
	}
	return append(append(a, hidden...), "--remount-ro", "/dev", "--chdir", "/"), nil
}

// bwrapNamespaces returns the arguments for namespaces without capabilities. --die-with-parent is not used: it would
// end bwrap with the thread of the daemon that started it. Instead the helper ends with its socket.
func (s *Spec) bwrapNamespaces() []string {
	a := []string{"--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--new-session", "--cap-drop", "ALL"}
	if s.Loopback {
		a = append(a, "--unshare-net")
	}
	return a
}

// bwrapPrivate mounts the file systems of privateDirs. bwrap cannot limit their number of files.
func (s *Spec) bwrapPrivate() []string {
	private := func(path, mode string, bytes uint64) []string {
		a := []string{"--perms", mode, "--tmpfs", path}
		if bytes > 0 {
			a = append([]string{"--size", strconv.FormatUint(bytes, 10)}, a...)
		}
		return a
	}
	var a []string
	for _, path := range []string{"/tmp", "/var/tmp"} {
		if isDir(path) {
			a = append(a, private(path, "1777", s.TmpBytes)...)
		}
	}
	if isDir("/run") {
		a = append(a, private("/run", "0755", 1<<20)...)
	}
	return append(a, private("/dev/shm", "1777", shmBytes)...)
}

// bwrapContents fills the private directories with caches, resolv.conf and sockets of the machine. Those below a root
// are already there.
func (s *Spec) bwrapContents() (a []string) {
	for _, c := range s.Caches {
		if Covered(c.Path) || isDir(c.Path) {
			a = append(a, "--bind", c.From, c.Path)
		}
	}
	files := slices.Clone(s.Sockets)
	if path, ok := resolverBelowRun(); ok {
		files = append(files, path)
	}
	for _, path := range files {
		if Covered(path) && !s.inRoot(path) {
			a = append(a, "--ro-bind-try", path, path)
		}
	}
	return a
}

// bwrapHidden covers hidden paths. It skips paths in a covered directory, which bwrap would create.
func (s *Spec) bwrapHidden(cover func() (int, error)) ([]string, error) {
	var a, dirs []string
	here, err := s.hiddenHere()
	if err != nil {
		return nil, err
	}
	for _, path := range here {
		if slices.ContainsFunc(dirs, func(f string) bool { return paths.Below(path, f) }) {
			continue
		}
		if isDir(s.source(path)) {
			dirs = append(dirs, path)
			a = append(a, "--size", "4096", "--perms", "0000", "--tmpfs", path, "--remount-ro", path)
			continue
		}
		fd, err := cover()
		if err != nil {
			return nil, err
		}
		a = append(a, "--perms", "0000", "--ro-bind-data", strconv.Itoa(fd), path)
	}
	return a, nil
}

// hiddenHere returns the hidden and masked paths that exist in the view, with links resolved, directories before
// their contents.
func (s *Spec) hiddenHere() (list []string, err error) {
	for _, path := range s.Hide {
		real, err := paths.Existing(path)
		if errors.Is(s.unreachable(path, err), unix.EACCES) {
			return nil, stage("hide "+path, err)
		}
		if err != nil { // missing or unreachable, also for calls
			continue
		}
		source := s.source(real)
		shown := s.inRoot(real) || source != real || !Covered(real)
		if _, err := os.Lstat(source); err == nil && shown {
			list = append(list, real)
		}
	}
	for _, path := range s.Masks { // canonical; the helper verifies that they still are
		if _, err := os.Lstat(path); err == nil {
			list = append(list, path)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// lookAtRoots records the identities of the roots, and of the pinned and protected paths below them. It follows no
// links.
func (s *Spec) lookAtRoots() error {
	for i, r := range s.Roots {
		is, err := identityAt(r.Path)
		if err != nil {
			return stage("open root "+r.Path, err)
		}
		if r.Is == "" {
			s.Roots[i].Is = is
		}
	}
	note := func(path string, writable bool) error {
		is, err := identityAt(s.source(path))
		if err == nil && !(writable && slices.ContainsFunc(s.Roots, func(r Root) bool { return r.Path == path })) {
			s.Fixed = append(s.Fixed, Root{path, writable, is})
		}
		return except(err, unix.ENOENT, unix.ENOTDIR)
	}
	for _, dir := range WaysTo(s.View) {
		if err := note(dir, true); err != nil {
			return stage("pin "+dir, err)
		}
	}
	for _, path := range s.Protect {
		if err := note(path, false); err != nil {
			return stage("protect "+path, err)
		}
	}
	return nil
}

func identityAt(path string) (string, error) {
	fd, err := locate(path)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return Identity(fd)
}

// pins returns the pinned directories of Fixed, without the protected paths.
func (s *Spec) pins() []Root {
	return slices.DeleteFunc(slices.Clone(s.Fixed), func(r Root) bool { return !r.Writable })
}

// source returns the path on the host of a path in the view.
func (s *Spec) source(path string) string {
	if s.inRoot(path) {
		return path
	}
	for _, c := range s.Caches {
		if paths.Below(path, c.Path) {
			return c.From + path[len(c.Path):]
		}
	}
	return path
}

func (s *Spec) inRoot(path string) bool {
	return slices.ContainsFunc(s.Roots, func(r Root) bool { return paths.Within(path, r.Path) })
}

// isDir reports whether path is a directory and not a link to one.
func isDir(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
