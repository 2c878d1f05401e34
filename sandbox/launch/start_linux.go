package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// Start confines a helper as the profile says and makes it start the command. It returns when the command runs. The
// error is a *StageError, which wraps ErrUnavailable, if it cannot be confined, or a *DirError if its directory
// cannot be entered; then nothing of the command has run. With Reserve, Start returns at once, and Release returns
// these errors.
//
// The caller must close the files, and call End of the Process.
func Start(ctx context.Context, c Command) (*Process, error) {
	p, err := start(ctx, c)
	if errors.Is(err, ErrGone) {
		c.Slots = nil
		return start(ctx, c)
	}
	return p, err
}

// start is Start, except that it returns ErrGone if a reused helper failed.
func start(ctx context.Context, c Command) (*Process, error) {
	spec, handed, err := c.spec()
	if err != nil {
		return nil, &sandbox.StageError{Stage: "profile", Err: err}
	}
	tmp, err := newScratch(c.Profile, &spec)
	if err != nil {
		return nil, &sandbox.StageError{Stage: "profile", Err: err}
	}
	p := &Process{
		scratch: tmp,
		exited:  make(chan struct{}), alone: make(chan struct{}), gone: make(chan struct{}),
		answers: make(chan helper.Event, 4), signalled: make(chan struct{}, 1),
	}
	if c.Profile.Mode == sandbox.FullAccess || !apart(c.Profile.Tier) { // no namespace ends with the helper
		p.cookie = "TOOLD_CALL=" + rand.Text()
		spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], p.cookie)
	}
	if p.kind, p.again = slotKindOf(c, spec); p.again {
		spec.Again = true
	}
	if c.Room > 0 {
		p.warm = newWarmShell(c)
		spec.Missing = p.warm.host.Missing()
	}
	if err = p.launch(c, spec, handed); err == nil && !spec.Reserve {
		err = p.hear(ctx)
	}
	if err != nil {
		p.warm.close()
		p.scratch.remove()
		return nil, err
	}
	return p, nil
}

func (c Command) spec() (spec helper.Spec, handed []*os.File, err error) {
	p := c.Profile
	if err := check(p); err != nil {
		return spec, nil, err
	}
	spec = helper.Spec{
		View: helper.View{Terminal: c.Terminal}, Dir: c.Dir, DirIs: c.DirIs, Argv: c.Argv, Env: c.Env, Reserve: c.Reserve && c.Room == 0,
		Room: uint64(c.Room), OpenFiles: p.Limits.OpenFiles, FileBytes: p.Limits.FileBytes,
		MemoryBytes: p.Limits.MemoryBytes, Processes: p.Limits.Processes, Counted: p.Groups != nil, Bounded: p.Groups.Memory(),
	}
	if p.Mode == sandbox.FullAccess {
		return spec, nil, nil
	}
	confine(p, &spec)
	spec.Hide, spec.Sockets, spec.TmpBytes = hidden(p), p.Sockets, p.Limits.TmpBytes
	spec.Ports = ports(p)
	if p.Tier == sandbox.TierC {
		spec.Roots = listedRoots(p)
		return spec, nil, nil
	}
	spec.Masks = p.Masked()
	if p.Workspace != "" {
		spec.Opened = p.Roots()
	}
	if p.Mode == sandbox.WorkspaceWrite {
		spec.Roots = writable(p)
		spec.Protect = p.Fixed()
		handed = p.Caches.AddTo(&spec)
	} else if p.Workspace != "" && helper.Covered(p.Workspace) {
		spec.Roots = []helper.Root{{Path: p.Workspace}}
	}
	return spec, handed, nil
}

// hidden returns the paths to hide. It restores permissions that calls may have removed from directories on the way,
// since the helper must be able to cover each path below a root. What another user has made inaccessible, calls
// cannot open.
func hidden(p sandbox.Profile) []string {
	roots := p.Roots()
	closed := func(path string) bool {
		return slices.ContainsFunc(roots, func(root string) bool {
			return paths.Below(path, root) && isClosed(path) && nofollow.OpenUpTo(root, filepath.Dir(path), time.Time{}) == unix.EPERM
		})
	}
	return slices.DeleteFunc(slices.Clone(p.Hide), closed)
}

func isClosed(path string) bool {
	_, err := nofollow.Lstat(path)
	return err == unix.EACCES
}

func confine(p sandbox.Profile, spec *helper.Spec) {
	spec.Landlock, spec.Seccomp = true, true
	spec.Shared = !apart(p.Tier)
	if p.Tier == sandbox.TierC {
		spec.Listed, spec.Offline = true, !p.Network
		return
	}
	spec.Namespaces, spec.Loopback = true, !p.Network
	if p.Tier == sandbox.TierBwrap {
		useBwrap(spec)
	}
}

func writable(p sandbox.Profile) (roots []helper.Root) {
	for _, root := range p.Roots() {
		roots = append(roots, helper.Root{Path: root, Writable: true, Is: p.Pinned[root]})
	}
	return roots
}

// listedRoots returns the directories in which a call in tier C can open files.
func listedRoots(p sandbox.Profile) (roots []helper.Root) {
	if p.Mode == sandbox.WorkspaceWrite {
		roots = writable(p)
	} else if p.Workspace != "" {
		roots = append(roots, helper.Root{Path: p.Workspace})
	}
	for _, dir := range p.Read {
		if p.Mode != sandbox.WorkspaceWrite || !p.InRoots(dir) {
			roots = append(roots, helper.Root{Path: dir})
		}
	}
	return roots
}

func ports(p sandbox.Profile) (ports []uint64) {
	for _, port := range p.Ports {
		if !p.Network && p.Tier != sandbox.TierC {
			ports = append(ports, uint64(port))
		}
	}
	return ports
}

// helperCommand starts this binary in new namespaces. Its user namespace maps no user until the helper maps its own.
// The capabilities for the setup are ambient, since exec drops all others.
//
// The new process shares the daemon's memory until exec (CLONE_VM), and the daemon waits for it (CLONE_VFORK), as in
// every other start. With the user mapping of os/exec, fork would copy the page tables, and each later write of the
// daemon would cause a page fault.
func helperCommand(c Command, spec helper.Spec, control *os.File) *exec.Cmd {
	sys := &syscall.SysProcAttr{Setsid: true, Setctty: c.Terminal && !spec.Again}
	if spec.Namespaces {
		sys.Cloneflags = unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		if !spec.Shared {
			sys.Cloneflags |= unix.CLONE_NEWPID
		}
		if spec.Loopback {
			sys.Cloneflags |= unix.CLONE_NEWNET
		}
		sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
		if spec.Again {
			sys.AmbientCaps = append(sys.AmbientCaps, unix.CAP_SYS_CHROOT)
		}
		if len(spec.Ports) > 0 {
			sys.AmbientCaps = append(sys.AmbientCaps, unix.CAP_NET_BIND_SERVICE)
		}
		if len(spec.Overlays) > 0 { // an overlay uses the capabilities of its creator
			sys.AmbientCaps = append(sys.AmbientCaps, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN)
		}
	}
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"toold", helper.Marker},
		Env:   []string{"GOMAXPROCS=2"}, // otherwise the runtime reads the files of the control group
		Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		ExtraFiles: []*os.File{control}, SysProcAttr: sys,
	}
}
