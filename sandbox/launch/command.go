// Package launch starts commands in the sandbox that a sandbox.Profile describes.
//
// On Linux, it starts them through a helper: this binary, re-executed in new namespaces (see Start). What cannot be
// confined does not run. Choose finds the tier that the machine supports. The package makes no decisions about calls
// and opens no files for them: see packages policy and fileworker.
package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

// Command is a program to start in the sandbox.
type Command struct {
	Argv []string // Argv[0] is an absolute path
	Env  []string // complete environment
	Dir  string   // absolute; entered inside the sandbox
	// DirIs is the identity that Dir must have, from Pin. If it is set, no component of Dir may be a link. "" accepts
	// any directory.
	DirIs string

	Stdin, Stdout, Stderr *os.File
	Terminal              bool     // Stdin is a terminal, which becomes the controlling one
	Extra                 *os.File // descriptor 3 of the program; may be nil

	// Room > 0 starts a bash without its script: Argv ends in -c, Process.SetScript sets a script of at most Room
	// bytes, and Process.Release runs it. Extra must be nil. 0 = Argv is complete.
	Room int

	// Slots, if set, may provide the helper of an earlier command, and receives this helper afterwards.
	Slots *Slots

	// Reserve prepares the sandbox, but starts the command only on Process.Release. It has no effect with Room.
	Reserve bool

	Profile sandbox.Profile
}

// Member is a process of a call.
type Member = helper.Member

// DirError is returned if a command cannot start in its directory. errors.Is finds fs.ErrNotExist, fs.ErrPermission
// or syscall.ENOTDIR.
type DirError struct {
	Dir string
	Err error
}

func (e *DirError) Error() string {
	return fmt.Sprintf("cannot run in the directory %q: %v", e.Dir, e.Err)
}

// Unwrap returns the kernel's reason.
func (e *DirError) Unwrap() error { return e.Err }

// check returns an error for a profile that would confine less than it says.
func check(p sandbox.Profile) error {
	if p.Tier == sandbox.TierC && p.Mode != sandbox.FullAccess {
		if err := checkListed(p); err != nil {
			return err
		}
	}
	switch p.Mode {
	case sandbox.FullAccess, sandbox.ReadOnly:
		return nil
	case sandbox.WorkspaceWrite:
	default:
		return fmt.Errorf("unknown profile %d", int(p.Mode))
	}
	for _, root := range p.Roots() {
		if !filepath.IsAbs(root) || filepath.Clean(root) != root {
			return fmt.Errorf("the writable directory %q is not an absolute, clean path", root)
		}
		for _, never := range []string{"/proc", "/sys", "/dev"} {
			if root == "/" || root == never || strings.HasPrefix(root, never+"/") {
				return fmt.Errorf("%s cannot be made writable", root)
			}
		}
	}
	return nil
}
