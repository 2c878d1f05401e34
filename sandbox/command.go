package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toold/toold/sandbox/internal/helper"
)

// Command is one program to start in the sandbox.
type Command struct {
	Argv []string // Argv[0] is an absolute path
	Env  []string // the whole environment
	Dir  string   // absolute; entered inside the sandbox
	// DirIs is which folder Dir must be, as Pin tells; no link may lead to it then. ""
	// takes whichever is there.
	DirIs string

	Stdin, Stdout, Stderr *os.File
	Terminal              bool     // Stdin is a terminal and becomes the controlling one
	Extra                 *os.File // the program's descriptor 3; may be nil

	// Room starts a bash without its script: Argv ends with -c, and Process.Give
	// brings a script of at most so many bytes, which Process.Release lets run. Extra
	// is nil then. 0 = Argv is complete.
	Room int

	// Slots, if set, may hold the command in a helper of an earlier one, and takes its
	// helper after it.
	Slots *Slots

	// Hold keeps the command from starting before Process.Release: the sandbox is made
	// meanwhile. It has no meaning with Room.
	Hold bool

	Profile Profile
}

// Member is one process of a call.
type Member = helper.Member

// DirError says that a command cannot start in the folder it asked for.
// errors.Is sees fs.ErrNotExist, fs.ErrPermission or syscall.ENOTDIR.
type DirError struct {
	Dir string
	Err error
}

func (e *DirError) Error() string {
	return fmt.Sprintf("cannot run in the folder %q: %v", e.Dir, e.Err)
}

// Unwrap returns the kernel's reason.
func (e *DirError) Unwrap() error { return e.Err }

// check refuses a profile that would confine less than it seems to.
func (p Profile) check() error {
	if p.Tier == TierC && p.Mode != FullAccess {
		if err := p.checkListed(); err != nil {
			return err
		}
	}
	switch p.Mode {
	case FullAccess, ReadOnly:
		return nil
	case WorkspaceWrite:
	default:
		return fmt.Errorf("unknown profile %d", int(p.Mode))
	}
	for _, root := range p.roots() {
		if !filepath.IsAbs(root) || filepath.Clean(root) != root {
			return fmt.Errorf("the writable folder %q is not an absolute, clean path", root)
		}
		for _, never := range []string{"/proc", "/sys", "/dev"} {
			if root == "/" || root == never || strings.HasPrefix(root, never+"/") {
				return fmt.Errorf("%s cannot be made writable", root)
			}
		}
	}
	return nil
}

// grouped tells for a report whether a call has a control group.
func (p Profile) grouped() []string {
	switch {
	case p.Groups == nil:
		return nil
	case p.Groups.Memory():
		return []string{"cgroup:memory"}
	}
	return []string{"cgroup"}
}

// report is what this version of Landlock enforces, with or without a broker.
func (p Profile) report(landlock int, brokered bool) Report {
	if p.Mode == FullAccess {
		return Report{Profile: p.Mode.String(), Enforced: []string{}, Network: true, Tier: "none"}
	}
	caches := ""
	if p.Mode == WorkspaceWrite {
		caches = p.Caches.kind()
	}
	var enforced []string
	switch p.Tier {
	case TierA, TierBwrap:
		enforced = append(enforced, "namespaces")
	case TierB:
		enforced = append(enforced, "namespaces-but-pid")
	}
	sockets := "no-sockets"
	if brokered {
		sockets = "sockets"
	}
	enforced = append(enforced, fmt.Sprintf("landlock:%d", landlock), "seccomp", sockets)
	return Report{
		Proxy:    !p.Network && len(p.Ports) > 0,
		Profile:  p.Mode.String(),
		Enforced: append(enforced, p.grouped()...),
		Network:  p.Network,
		Caches:   caches,
		Tier:     p.Tier.String(), Degraded: p.Degraded,
	}
}
