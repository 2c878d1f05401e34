package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// invisible tells why a call cannot even see a path, and what governs that; ""
// when it can.
func (p Profile) invisible(canonical string) (setting, why string) {
	if !filepath.IsAbs(canonical) || filepath.Clean(canonical) != canonical || strings.ContainsRune(canonical, 0) {
		return "", "the path is not canonical"
	}
	if p.Mode == FullAccess {
		return "", ""
	}
	for _, hidden := range p.Hide {
		if within(canonical, hidden) {
			return settingHide, hidden + " is hidden by sandbox.hide"
		}
	}
	if p.Tier == TierC {
		if p.canRead(canonical) && !within(canonical, "/proc") { // which is the machine's
			return "", ""
		}
		return settingRead, "in tier C, without namespaces, a call can read the workspace " + p.Workspace + ", the system's folders and those in sandbox.read; let the user add the folder there"
	}
	// A confined process has its own of these. The host's are no part of what
	// it can see, and the daemon's /proc would even show the daemon itself.
	for _, private := range []string{"/proc", "/dev", "/run", "/tmp", "/var/tmp"} {
		if within(canonical, private) && !p.inRoot(canonical) {
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
	return within(canonical, "/tmp") || within(canonical, "/var/tmp")
}

func (p Profile) inRoot(canonical string) bool {
	if p.Workspace != "" && within(canonical, p.Workspace) {
		return true
	}
	for _, root := range p.Write {
		if within(canonical, root) {
			return true
		}
	}
	return false
}

// within compares components, so that /a/bc is not within /a/b.
func within(path, root string) bool {
	if root == "" {
		return false
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, string(filepath.Separator)))
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}

// Resolve returns the canonical form of an absolute path: every symbolic link
// resolved, component by component, so that "link/.." means what it means to
// the kernel. From the first component on that does not exist the rest is
// taken as it is written. It does not open anything; that the path still means
// the same when it is used, is for Files to verify.
func Resolve(path string) (string, error) {
	canonical, _, err := ResolveLinks(path)
	return canonical, err
}

// ResolveLinks is Resolve. It also returns the symbolic links that it followed,
// each by its canonical path.
func ResolveLinks(path string) (canonical string, links []string, err error) {
	canonical, _, links, err = resolve(path, "")
	return canonical, links, err
}

// ResolveOutside is Resolve for a path that may lead into dir, an absolute clean
// path. Below dir nothing is resolved: rest is what the path holds there, as it is
// written. outside is true when the path does not lead into dir.
func ResolveOutside(path, dir string) (canonical, rest string, outside bool, err error) {
	canonical, rest, _, err = resolve(path, dir)
	return canonical, rest, canonical != dir, err
}

// resolve resolves a path up to the directory stop, and returns the rest.
func resolve(path, stop string) (canonical, rest string, links []string, err error) {
	if !filepath.IsAbs(path) {
		return "", "", nil, fmt.Errorf("cannot resolve %q: the path is not absolute", path)
	}
	root := filepath.VolumeName(path) + string(filepath.Separator)
	done, rest := root, path[len(root):]
	for rest != "" && done != stop {
		var name string
		name, rest = cutComponent(rest)
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := below(done, name)
		target, err := readLink(next)
		switch {
		case err != nil:
			return "", "", nil, fmt.Errorf("cannot resolve %q: %w", path, err)
		case target == "":
			done = next
			continue
		case len(links) == maxLinks:
			return "", "", nil, fmt.Errorf("cannot resolve %q: more than %d symbolic links", path, maxLinks)
		}
		links = append(links, next)
		rest = target + string(filepath.Separator) + rest
		if filepath.IsAbs(target) {
			done, rest = root, rest[len(filepath.VolumeName(target)):]
		}
	}
	return done, rest, links, nil
}

// below puts a name behind a clean path. Join would go through the path again, and
// make resolving take time that grows with the square of its length.
func below(dir, name string) string {
	if os.IsPathSeparator(dir[len(dir)-1]) {
		return dir + name
	}
	return dir + string(filepath.Separator) + name
}

// maxLinks is the kernel's own limit (path_resolution(7)).
const maxLinks = 40

func cutComponent(path string) (name, rest string) {
	i := 0
	for i < len(path) && !os.IsPathSeparator(path[i]) {
		i++
	}
	if i == len(path) {
		return path, ""
	}
	return path[:i], path[i+1:]
}

// readLink returns the target of a symbolic link; an empty one for anything
// else, also where nothing is.
func readLink(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || isNotDir(err):
		return "", nil
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink == 0:
		return "", nil
	}
	return os.Readlink(path)
}

// Replacement is the new content of a file.
type Replacement struct {
	Data []byte
	// Old is the file that is replaced, as Files opened it. Its mode, owner
	// and extended attributes are kept (not its setuid and setgid bits and file
	// capabilities, which must not pass to content from elsewhere). Nil: the file
	// is new, and it is an error when there is one.
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
