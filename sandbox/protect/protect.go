// Package protect keeps calls from changing the files of a project that other programs run or
// obey, such as git hooks and .envrc.
//
// Those that exist when a call begins (Call.Existing) are made read-only for it by the sandbox.
// Missing ones are watched for (inotify(7)): one that appears ends the call, except in a directory
// that the call made. It is removed after the call, with a copy in the quarantine. Nothing is
// renamed, and everything is opened by descriptors, following no link: other calls may have it
// open.
package protect

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Options configure a Watcher.
type Options struct {
	// Roots are the canonical directories that calls may write.
	Roots []string
	// Names are protected in every directory of the roots except dependencies: file names, or
	// paths such as ".cargo/config.toml". ".git/…" applies to every git directory.
	Names []string
	// Quarantine is the directory for copies of removed files, created on demand, below no
	// root.
	Quarantine string
	// Report only reports: nothing is removed, no call is ended.
	Report bool
	// Watches is the maximum number of watched directories; 0 = half of the kernel's limit, at
	// most 65 536. The others are searched at the end of each call.
	Watches int
	// Sight receives what the scan finds; may be nil.
	Sight Sight
}

// Deepest is how many directories may be below each other in a root: each costs what all above it cost.
// A call that makes more is ended, and what is below more is not looked at.
const Deepest = 256

// A Sight receives the contents of the roots. Its methods are called one at a time, with the
// Watcher locked: they must not call it.
type Sight interface {
	// Listed passes all entries of a directory. If matters, it is listed again when it is
	// moved. moved: it, or a directory above it, just was.
	Listed(dir string, entries []fs.DirEntry, moved bool) (matters bool)
	// Wants reports whether a path matters, by its name alone.
	Wants(path string, dir bool) bool
	// Changed reports that such a path was created, removed or replaced.
	Changed(path string)
	// Moved reports a directory's new path. It returns whether to list it again.
	Moved(from, to string) bool
}

// Incident is something that appeared under a protected name.
type Incident struct {
	Path string
	Why  string // what is wrong with it, for people and models
	Kept string // the copy in the quarantine; "" = not removed
	Err  error  // why it could not be removed
	// Later: it is removed when the calls that may have made it have ended.
	Later bool
	// Gone: it no longer existed when the call had ended.
	Gone bool
	// Own: it is in a project that the call made. It is kept, and protected from the next call
	// on.
	Own bool
	// Rule is the policy rule for which it was removed; "" = its name is protected.
	Rule string
	// Instead says what to do; "" = what holds for every protected name.
	Instead string
}

// A Removal is something for Watcher.Remove.
type Removal struct {
	Path, Why, Rule string      // as in Incident
	Still           func() bool // reports whether it is still what was found
}

// Violation reports whether the call did something it must not.
func (i Incident) Violation() bool { return !i.Own }

// names are Options.Names, prepared for lookup.
type names struct {
	single map[string]bool
	nested map[string][]string // by directory
	git    []string            // in git's directories, without ".git/"
	file   bool                // ".git" itself, if it is a file
}

func newNames(all []string) names {
	n := names{single: map[string]bool{}, nested: map[string][]string{}}
	for _, name := range all {
		dir, rest, nested := strings.Cut(name, "/")
		switch {
		case name == ".git":
			n.file = true
		case dir == ".git":
			n.git = append(n.git, rest)
		case nested:
			n.nested[dir] = append(n.nested[dir], rest)
		default:
			n.single[name] = true
		}
	}
	return n
}

func (n names) has(dir, name string) bool {
	return n.single[name] || len(n.nested) > 0 && slices.Contains(n.nested[dir], name)
}

// dependencies are directories that no one opens as projects.
var dependencies = []string{"node_modules", ".venv", "venv", "site-packages", "vendor", ".tox"}

// InDependencies reports whether a path below root is in a directory of dependencies.
func InDependencies(path, root string) bool {
	rest, ok := inside(path, root)
	return ok && slices.ContainsFunc(strings.Split(filepath.Dir(rest), "/"), func(dir string) bool { return slices.Contains(dependencies, dir) })
}

func inside(path, root string) (rest string, ok bool) {
	return strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// name returns the protected name that contains a canonical path, or "". It uses only the path, so
// it is stricter than the watch.
func (o Options) name(path string) string {
	for _, root := range o.Roots {
		rest, ok := inside(path, root)
		parts := strings.Split(rest, "/")
		for i := 0; ok && i < len(parts); i++ {
			if name := matching(parts[i:], o.Names); name != "" {
				return name
			}
		}
	}
	return ""
}

// matching returns the name that is a prefix of a path, also in the git directories of modules
// and worktrees.
func matching(parts, names []string) string {
	for _, name := range names {
		want := strings.Split(name, "/")
		switch {
		case name == ".git":
			if len(parts) == 1 && parts[0] == name {
				return name
			}
		case len(parts) >= len(want) && slices.Equal(parts[:len(want)], want):
			return name
		case want[0] == ".git" && parts[0] == ".git" && nestedGit(parts, want[1:]):
			return name
		}
	}
	return ""
}

func nestedGit(parts, want []string) bool {
	if len(parts) < 3 || parts[1] != "modules" && parts[1] != "worktrees" {
		return false
	}
	for i := 3; i+len(want) <= len(parts); i++ {
		if slices.Equal(parts[i:i+len(want)], want) {
			return true
		}
	}
	return false
}
