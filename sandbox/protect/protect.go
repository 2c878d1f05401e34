// Package protect keeps calls from changing the files of a project that other programs run or read as configuration,
// such as git hooks and .envrc.
//
// The sandbox makes those that exist when a call begins read-only (Call.Existing). The package watches for others
// (inotify(7)): one that appears ends the call, except in a directory that the call created. It is removed after the
// call, with a copy in the quarantine. Nothing is renamed, and everything is opened through descriptors without
// following links, since other calls may have it open.
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
	// Names are protected in every directory of the roots except dependencies: file names, or paths such as
	// ".cargo/config.toml". ".git/…" applies to every git directory.
	Names []string
	// Quarantine is the directory for copies of removed files. It must not be below a root, and is created when
	// needed.
	Quarantine string
	// Report disables removal and the ending of calls: incidents are only reported.
	Report bool
	// Watches is the maximum number of watched directories; 0 = half of the kernel's limit, at most 65 536. The
	// others are searched at the end of each call.
	Watches int
	// Observer receives what the scan finds; may be nil.
	Observer Observer
}

// Deepest is how many directories may be nested below a root, since each costs as much as all above it. A call that
// creates more is ended; what is deeper is not examined.
const Deepest = 256

// An Observer receives the contents of the roots. Its methods are called sequentially, with the Watcher locked: they must
// not call it.
type Observer interface {
	// Listed passes all entries of a directory. If matters is true, Listed is called again after the directory has
	// moved. moved means that it, or a directory above it, just has.
	Listed(dir string, entries []fs.DirEntry, moved bool) (matters bool)
	// Wants reports whether a path matters, judging by its name.
	Wants(path string, dir bool) bool
	// Changed reports that such a path was created, removed or replaced.
	Changed(path string)
	// Moved reports the new path of a directory. It returns whether to list it again.
	Moved(from, to string) bool
}

// Incident is something that appeared under a protected name.
type Incident struct {
	Path string
	Why  string // what is wrong with it, as text
	Kept string // path of the copy in the quarantine; "" = not removed
	Err  error  // why it could not be removed
	Lost error  // why the copy of what was removed is not complete
	// Later means that it will be removed when the calls that may have created it have ended.
	Later bool
	// Gone means that it no longer existed when the call had ended.
	Gone bool
	// Own means that it is in a project that the call created. It is kept, and protected in later calls.
	Own bool
	// Rule is the policy rule because of which it was removed; "" = its name is protected.
	Rule string
	// Instead is advice; "" = the advice for any protected name.
	Instead string
}

// A Removal is a request to Watcher.Remove.
type Removal struct {
	Path, Why, Rule string      // as in Incident
	Still           func() bool // reports whether the path is still what was found
}

// Violation reports whether the call did something that it must not.
func (i Incident) Violation() bool { return !i.Own }

// names are Options.Names, prepared for lookup.
type names struct {
	single map[string]bool
	nested map[string][]string // by directory
	git    []string            // in git directories, without ".git/"
	file   bool                // ".git" itself if it is a file
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

// dependencies lists directories that no one opens as projects.
var dependencies = []string{"node_modules", ".venv", "venv", "site-packages", "vendor", ".tox"}

// InDependencies reports whether a path below root is in a directory of dependencies.
func InDependencies(path, root string) bool {
	rest, ok := inside(path, root)
	return ok && slices.ContainsFunc(strings.Split(filepath.Dir(rest), "/"), func(dir string) bool { return slices.Contains(dependencies, dir) })
}

func inside(path, root string) (rest string, ok bool) {
	return strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// name returns the protected name that contains a canonical path, or "". It only uses the path, and so is stricter
// than the watch.
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

// matching returns the name that is a prefix of a path, also in the git directories of modules and worktrees.
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
