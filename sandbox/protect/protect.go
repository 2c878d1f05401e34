// Package protect keeps calls from changing the files of a project that other
// programs run or obey, such as git hooks and .envrc.
//
// What exists when a call begins is listed by Call.Existing, and the sandbox makes it
// read-only. What is missing is watched for (inotify(7)): when it appears in a directory
// that existed before, the call is ended. In a directory that the call made,
// the call goes on. What is not allowed is removed when the call has ended, after a copy
// of it was put into the quarantine. Nothing is moved, and everything is opened by
// descriptors, following no link: other calls may still hold what is removed.
//
// The package does not decide which calls may change such files, and confines nothing.
package protect

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Options configure a Watcher.
type Options struct {
	// Roots are the directories that calls may write, canonical.
	Roots []string
	// Names are protected in every directory of the roots but those of dependencies: names, or
	// of a file in a directory such as ".cargo/config.toml". Those that begin with ".git/" are in
	// git's own directories, wherever git keeps one.
	Names []string
	// Quarantine is the directory that gets copies of what is removed. It is made
	// when it is needed, and must not be in a root.
	Quarantine string
	// Report leaves what appears where it is, and ends no call.
	Report bool
	// Watches is how many directories may be watched; 0 = half of what the kernel
	// gives, and no more than 65 536. The others are searched at the end of each call.
	Watches int
	// Sight is shown what the scan finds; nil = it is shown to no one.
	Sight Sight
}

// A Sight is shown what is in the roots as the Watcher scans them, so that another
// package need not read every directory again. Its methods are called one at a time,
// with the Watcher locked: they must not call it.
type Sight interface {
	// Listed shows everything that is in a directory. It reports whether some of it matters:
	// the directory is listed again wherever it is moved.
	Listed(dir string, entries []fs.DirEntry) (matters bool)
	// Wants reports whether a path matters, by its name alone.
	Wants(path string, dir bool) bool
	// Changed shows that something came under such a path, went, or took another's place.
	Changed(path string)
	// Moved shows that a directory has another path now, with all that is in it. It
	// reports whether that has to be listed again.
	Moved(from, to string) bool
}

// Incident is something that appeared under a protected name.
type Incident struct {
	Path string
	Why  string // what is wrong with it, for people and models
	Kept string // the copy in the quarantine; empty = it is still there
	Err  error  // why it could not be removed
	// Later: it is removed when the calls that may have made it have ended.
	Later bool
	// Gone: it was not there any more when the call had ended.
	Gone bool
	// Own: it is part of a project that the call made. It stays, and is
	// protected from the next call on.
	Own bool
	// Rule is what a file was removed for, where that is not a protected name.
	Rule string
}

// A Removal is something that Watcher.Remove removes.
type Removal struct {
	Path, Why, Rule string      // as in Incident
	Still           func() bool // reports whether it is what was found
}

// Violation reports whether the call did what it may not do.
func (i Incident) Violation() bool { return !i.Own }

// names are Options.Names, prepared for look-ups.
type names struct {
	single map[string]bool
	nested map[string][]string // by directory
	git    []string            // in git's directories, without ".git/"
	file   bool                // ".git" itself where it is a file
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

// has reports whether a name counts in a directory that is called dir.
func (n names) has(dir, name string) bool {
	return n.single[name] || len(n.nested) > 0 && slices.Contains(n.nested[dir], name)
}

// dependencies are the directories that hold what other people's projects are made of.
// People do not open these as projects of their own.
var dependencies = []string{"node_modules", ".venv", "venv", "site-packages", "vendor", ".tox"}

// InDependencies reports whether a path below root is in a directory of dependencies.
func InDependencies(path, root string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
	return ok && slices.ContainsFunc(strings.Split(filepath.Dir(rest), "/"), func(dir string) bool { return slices.Contains(dependencies, dir) })
}

// name is the protected name that a canonical path has or is in, anywhere below a
// root; "" when there is none. It looks at the path alone, so it is stricter than what
// is watched for.
func (o Options) name(path string) string {
	for _, root := range o.Roots {
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
		if !ok {
			continue
		}
		parts := strings.Split(rest, string(filepath.Separator))
		for i := range parts {
			if name := matching(parts[i:], o.Names); name != "" {
				return name
			}
		}
	}
	return ""
}

// matching is the name with which a path begins. A git directory that holds those of
// modules or worktrees has further ones below it.
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

// nestedGit finds want in the git directory of a module or worktree.
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
