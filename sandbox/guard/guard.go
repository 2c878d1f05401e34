// Package guard keeps what programs obey when they find it in a project, such as
// git hooks or .envrc, out of the reach of calls.
//
// A call cannot change what is there when it begins: Call.Existing lists it, and
// the sandbox makes it read-only. What was missing then cannot be protected
// without leaving files on the host, so the guard watches for it (inotify(7)) and
// takes it away, at the latest before Call.End returns.
//
// It does not decide who may change such files, and it confines nothing.
package guard

import (
	"path/filepath"
	"slices"
	"strings"
)

// Options configure a Guard.
type Options struct {
	// Roots are the folders that calls may write, canonical.
	Roots []string
	// Names are protected in each root and in each repository below one: single
	// names such as ".envrc". Those that begin with ".git" and a slash are files
	// and folders of git's own folder, wherever git keeps one (also of submodules,
	// worktrees and bare repositories).
	Names []string
	// Quarantine is the folder in which what is taken away is kept, made when it
	// is needed. It must not be in a root.
	Quarantine string
	// Report leaves what appears where it is, and only tells.
	Report bool
	// Watches is how many folders may be watched; 0 = half of what the kernel gives, and
	// no more than 65 536. The others are looked through at the end of each call.
	Watches int
}

// Incident is something that appeared where it is not allowed to.
type Incident struct {
	Path string // where it was
	Why  string // what is wrong with it, for people and models
	Kept string // where it is now; empty: it is still there
	Err  error  // why it could not be taken away; nil when it was, or when Options.Report is set
}

// names are Options.Names, sorted for look-ups.
type names struct {
	plain []string // in roots and repositories
	git   []string // in a git folder, without ".git/"
	file  bool     // ".git" itself where it is a file
}

func sortNames(all []string) names {
	var n names
	for _, name := range all {
		if rest, ok := strings.CutPrefix(name, ".git/"); ok {
			n.git = append(n.git, rest)
		} else if name == ".git" {
			n.file = true
		} else {
			n.plain = append(n.plain, name)
		}
	}
	return n
}

// name is the protected name that a canonical path is or lies in, wherever it is
// below a root; "" when there is none. It looks at the path alone, so it is
// stricter than what is watched for: there a name counts in roots and
// repositories only.
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

// matching is the name that a path begins with. A folder of git's that holds
// those of modules or worktrees has further ones below it.
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

// nestedGit finds want in the git folder of a module or worktree.
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
