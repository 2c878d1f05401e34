package protect

import (
	"slices"
	"strings"
	"time"
)

// kind is what a directory is to git.
type kind int

const (
	plain     kind = iota // a directory of the project
	gitDir                // .git, or a module's
	gitInfo               // info in a git directory
	hooks                 // hooks in a git directory
	modules               // modules in a git directory, and directories in it that are git directories or hold some
	worktrees             // worktrees in a git directory
	worktree              // a directory in worktrees
	rebase                // the state of a rebase
	gitData               // what else is in a git directory
	forgotten             // it is gone
)

func (k kind) isGit() bool { return k == gitDir || k == modules || k == worktree }

// kindBelow is what a directory of this name is in one of kind k.
func (k kind) kindBelow(name string) kind {
	switch {
	case k == plain && name == ".git":
		return gitDir
	case k == plain:
		return plain
	case k == worktrees:
		return worktree
	case !k.isGit():
		return gitData
	}
	switch name {
	case "hooks":
		return hooks
	case "info":
		return gitInfo
	case "modules":
		return modules
	case "worktrees":
		return worktrees
	case "rebase-merge", "rebase-apply":
		return rebase
	}
	if k == modules && !gitStores(name) {
		return modules // a module's name may have slashes
	}
	return gitData
}

// gitStores reports whether git keeps nothing but data in a directory of this name.
func gitStores(name string) bool {
	return name == "objects" || name == "refs" || name == "logs" || name == "lfs"
}

// folder is a directory of the roots.
type folder struct {
	name     string // of a root: its path
	parent   *folder
	children map[string]*folder
	kind     kind
	root     bool
	bare     bool // it is a git directory itself
	library  bool // it is one of dependencies, or in one
	gitFile  bool // it holds a .git that is a file
	unread   bool // it could not be read when it was found, so what is in it may be old
	lost     bool // nothing is under its name any more: it was moved or removed

	wd   int32 // -1: it is not watched
	id   fileID
	born time.Time // when it was made; zero where the file system does not know
	seen uint64    // the number of the latest call when it was found
	held map[string]bool
}

// path is built from the names, since what is above a folder may be renamed.
func (f *folder) path() string {
	parts := []string{f.name}
	for p := f.parent; p != nil; p = p.parent {
		parts = append(parts, p.name)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

// kindBelow is what a directory of this name is in f.
func (f *folder) kindBelow(name string) kind {
	k := f.kind.kindBelow(name)
	if !f.bare || k != plain {
		return k
	}
	if as := gitDir.kindBelow(name); as != gitData || gitStores(name) {
		return as
	}
	return k
}

// isGit reports whether git reads the folder as its own.
func (f *folder) isGit() bool { return f.kind.isGit() || f.bare }

// base is the folder that counts when it is asked who made something: of the parts of a
// git directory the directory, of .cargo/config.toml that which holds .cargo.
func (f *folder) base(n names) *folder {
	for f.kind != plain && !f.isGit() && f.parent != nil {
		f = f.parent
	}
	if f.kind == plain && f.parent != nil && n.nested[f.name] != nil {
		f = f.parent
	}
	return f
}

// tree is what is known of the roots.
type tree struct {
	roots   []*folder
	byID    map[fileID]*folder
	watch   map[int32]*folder
	most    int                  // watches
	short   bool                 // of watches
	holders map[*folder]struct{} // folders in which something protected is, or may be
	dark    map[*folder]struct{} // not watched
	closed  map[*folder]struct{} // not readable
	again   map[*folder]struct{} // could not be opened where they should be: to be read again
	lost    map[*folder]struct{} // see folder.lost
	unseen  []*folder            // to be read before it is known what calls have left
	full    bool                 // with all folders below them
}

func newTree(most int) tree {
	return tree{
		byID: map[fileID]*folder{}, watch: map[int32]*folder{}, most: most, holders: map[*folder]struct{}{},
		dark: map[*folder]struct{}{}, closed: map[*folder]struct{}{}, again: map[*folder]struct{}{}, lost: map[*folder]struct{}{},
	}
}

// below reports whether f is top or in it.
func (f *folder) below(top *folder) bool {
	for ; f != nil; f = f.parent {
		if f == top {
			return true
		}
	}
	return false
}
