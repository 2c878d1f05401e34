package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
)

// CanRead reports why a call in this profile may not read a canonical path, a
// *Denial; nil means that it may. The answer is the same that a confined process
// would get: everything but Hide and the folders of which it has private ones.
func (p Profile) CanRead(canonical string) error {
	if setting, why := p.invisible(canonical); why != "" {
		return &Denial{Kind: DeniedFile, Op: "read", Target: canonical, Setting: setting, Hint: why}
	}
	return nil
}

// CanWrite reports why a call in this profile may not create, change or remove
// a canonical path, a *Denial; nil means that it may.
func (p Profile) CanWrite(canonical string) error {
	setting, why := p.invisible(canonical)
	switch {
	case why != "" && setting != settingRead: // what cannot be read in tier C may only be outside of sandbox.write
	case p.Mode == FullAccess:
		return nil
	case p.Mode != WorkspaceWrite:
		setting, why = "sandbox.profile", fmt.Sprintf("sandbox.profile is %s: nothing can be written", p.Mode)
	case p.inRoot(canonical):
		return nil
	default:
		setting = "sandbox.write"
		why = fmt.Sprintf("it is outside of the workspace %s and of the folders in sandbox.write; write inside of the workspace, or let the user add the folder to sandbox.write", p.Workspace)
	}
	return &Denial{Kind: DeniedFile, Op: "write", Target: canonical, Setting: setting, Hint: why}
}

// invisible returns why a call cannot see a path, and the setting; "" if it can.
func (p Profile) invisible(canonical string) (setting, why string) {
	if !filepath.IsAbs(canonical) || filepath.Clean(canonical) != canonical || strings.ContainsRune(canonical, 0) {
		return "", "the path is not canonical"
	}
	if p.Mode == FullAccess {
		return "", ""
	}
	for _, hidden := range p.Hide {
		if paths.Within(canonical, hidden) {
			return settingHide, hidden + " is hidden by sandbox.hide"
		}
	}
	if p.Tier == TierC {
		if p.canRead(canonical) && !paths.Within(canonical, "/proc") { // which is the machine's
			return "", ""
		}
		return settingRead, "in tier C, without namespaces, a call can read the workspace " + p.Workspace + ", the system's folders and those in sandbox.read; let the user add the folder there"
	}
	// A confined process has its own of these. The host's are no part of what
	// it can see, and the daemon's /proc would even show the daemon itself.
	for _, private := range []string{"/proc", "/dev", "/run", "/tmp", "/var/tmp"} {
		if paths.Within(canonical, private) && !p.inRoot(canonical) {
			return "sandbox.profile", fmt.Sprintf("in sandbox.profile %s every call has a private %s, gone with the call; use a file in the workspace %s", p.Mode, private, p.Workspace)
		}
	}
	return "", ""
}

// Scratch reports whether a canonical path lies in a folder for temporary files of
// which each call has a private one, gone with the call.
func (p Profile) Scratch(canonical string) bool {
	if p.Mode == FullAccess || p.Tier == TierC || p.inRoot(canonical) {
		return false
	}
	return paths.Within(canonical, "/tmp") || paths.Within(canonical, "/var/tmp")
}

func (p Profile) inRoot(canonical string) bool {
	within := func(root string) bool { return paths.Within(canonical, root) }
	return p.Workspace != "" && within(p.Workspace) || slices.ContainsFunc(p.Write, within)
}

// roots are the folders that a call may write.
func (p Profile) roots() []string { return append([]string{p.Workspace}, p.Write...) }

// Replacement is the new content of a file.
type Replacement struct {
	Data []byte
	// Old is the file that is replaced, as Files opened it. Mode, owner and extended attributes
	// are kept, but not setuid, setgid and file capabilities. Nil: the file must be new.
	Old *os.File
	// Seen is what Old.Stat told before its content was read: a file that was
	// changed since is not replaced. Nil: that is not verified.
	Seen fs.FileInfo
	// Parents makes missing folders above a new file.
	Parents bool
	// Like has the mode, owner and extended attributes that a new file gets. Nil: the
	// defaults of a new file.
	Like *os.File
	// Remove removes Old, which is needed; it is not replaced.
	Remove bool
}
