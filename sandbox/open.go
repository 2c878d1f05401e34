package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
)

// CanRead returns a *Denial if a call in this profile may not read a canonical path. It agrees with what a confined
// process can do: that reads everything except Hide and the host's version of its private directories.
func (p Profile) CanRead(canonical string) error {
	if setting, why := p.invisible(canonical); why != "" {
		return &Denial{Kind: DeniedFile, Op: "read", Target: canonical, Setting: setting, Hint: why}
	}
	return nil
}

// CanWrite returns a *Denial if a call in this profile may not create, change or remove a canonical path.
func (p Profile) CanWrite(canonical string) error {
	setting, why := p.invisible(canonical)
	switch {
	case why != "" && setting != settingRead: // a path that tier C cannot read may only be outside of sandbox.write
	case p.Mode == FullAccess:
		return nil
	case p.Mode != WorkspaceWrite:
		setting, why = "sandbox.profile", fmt.Sprintf("sandbox.profile is %s: nothing can be written", p.Mode)
	case p.InRoots(canonical):
		return nil
	default:
		setting = "sandbox.write"
		why = fmt.Sprintf("it is outside of the workspace %s and of the directories in sandbox.write; write inside of the workspace, or let the user add the directory to sandbox.write", p.Workspace)
	}
	return &Denial{Kind: DeniedFile, Op: "write", Target: canonical, Setting: setting, Hint: why}
}

// invisible returns why a call cannot see a path, and the setting behind that, or "" if it can.
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
		if p.canRead(canonical) && !paths.Within(canonical, "/proc") { // the machine's
			return "", ""
		}
		return settingRead, "in tier C, without namespaces, a call can read the workspace " + p.Workspace + ", the system's directories and those in sandbox.read; let the user add the directory there"
	}
	// A confined process has private versions of these. Those of the host are invisible, and the daemon's /proc would
	// expose the daemon.
	for _, private := range []string{"/proc", "/dev", "/run", "/tmp", "/var/tmp"} {
		if paths.Within(canonical, private) && !p.InRoots(canonical) {
			return "sandbox.profile", fmt.Sprintf("in sandbox.profile %s every call has a private %s, gone with the call; use a file in the workspace %s", p.Mode, private, p.Workspace)
		}
	}
	return "", ""
}

// Scratch reports whether a canonical path is in a temporary directory that each call has to itself and that is
// removed with it.
func (p Profile) Scratch(canonical string) bool {
	if p.Mode == FullAccess || p.Tier == TierC || p.InRoots(canonical) {
		return false
	}
	return paths.Within(canonical, "/tmp") || paths.Within(canonical, "/var/tmp")
}

// InRoots reports whether a canonical path is in one of Roots.
func (p Profile) InRoots(canonical string) bool {
	within := func(root string) bool { return paths.Within(canonical, root) }
	return p.Workspace != "" && within(p.Workspace) || slices.ContainsFunc(p.Write, within)
}

// Roots returns the directories that a call may write in WorkspaceWrite. The first is the workspace, which may be "".
func (p Profile) Roots() []string { return append([]string{p.Workspace}, p.Write...) }

func (p Profile) canRead(canonical string) bool {
	return p.InRoots(canonical) || slices.ContainsFunc(p.Read, func(dir string) bool { return paths.Within(canonical, dir) })
}
