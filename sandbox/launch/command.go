// Package launch starts commands in the sandbox that a sandbox.Profile describes.
//
// On Linux a helper starts them: this binary, re-executed in fresh namespaces (see Start). What
// cannot be confined does not run. Choose finds the tier that the machine supports. Package launch
// judges no call and opens no file for one: see packages policy and fileworker.
package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

// Command is one program to start in the sandbox.
type Command struct {
	Argv []string // Argv[0] is an absolute path
	Env  []string // the whole environment
	Dir  string   // absolute; entered inside the sandbox
	// DirIs is the identity Dir must have, from Pin; then no component of Dir may be a link. "" accepts
	// any.
	DirIs string

	Stdin, Stdout, Stderr *os.File
	Terminal              bool     // Stdin is a terminal and becomes the controlling one
	Extra                 *os.File // the program's descriptor 3; may be nil

	// Room > 0 starts a bash without its script: Argv ends with -c, Process.SetScript sets a script of
	// at most Room bytes, and Process.Release runs it. Extra must be nil then. 0 = Argv is complete.
	Room int

	// Slots, if set, may run the command in an earlier command's helper, and gets its helper back.
	Slots *Slots

	// Reserve prepares the sandbox but starts the command only on Process.Release. It has no effect
	// with Room.
	Reserve bool

	Profile sandbox.Profile
}

// Member is one process of a call.
type Member = helper.Member

// DirError reports that a command cannot start in its directory. errors.Is finds fs.ErrNotExist,
// fs.ErrPermission or syscall.ENOTDIR.
type DirError struct {
	Dir string
	Err error
}

func (e *DirError) Error() string {
	return fmt.Sprintf("cannot run in the directory %q: %v", e.Dir, e.Err)
}

// Unwrap returns the kernel's reason.
func (e *DirError) Unwrap() error { return e.Err }

// check rejects a profile that would confine less than it seems to.
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
