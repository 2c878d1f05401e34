package protect

import (
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// kind is what a directory is to git.
type kind int

const (
	plain      kind = iota // a directory of the project
	gitDir                 // .git, or a module's
	gitInfo                // info in a git directory
	hooks                  // hooks in a git directory
	modules                // modules in a git directory, and directories in it that are git directories or hold some
	worktrees              // worktrees in a git directory
	worktree               // a directory in worktrees
	unfinished             // the state of a rebase, or of several picks
	gitData                // what else is in a git directory
	forgotten              // it is gone
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
	case "rebase-merge", "rebase-apply", "sequencer":
		return unfinished
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

type directory struct {
	name     string // of a root: its path
	parent   *directory
	children map[string]*directory
	kind     kind
	root     bool
	bare     bool // it is a git directory itself
	library  bool // it is one of dependencies, or in one
	gitFile  bool // it holds a .git that is a file
	unread   bool // it could not be read when it was found, so what is in it may be old
	lost     bool // nothing is under its name any more: it was moved or removed
	sighted  bool // something in it, or in one below it, matters to the Sight

	wd   int32 // -1: it is not watched
	id   nofollow.ID
	born time.Time // when it was made; zero where the file system does not know
	seen uint64    // the number of the latest call when it was found
	read uint64    // tree.drains when what is in it was looked at last; less than tree.gap: not since events were lost
	held map[string]bool
}

func (f *directory) path() string {
	parts := []string{f.name}
	for p := f.parent; p != nil; p = p.parent {
		parts = append(parts, p.name)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

// kindBelow is what a directory of this name is in f.
func (f *directory) kindBelow(name string) kind {
	k := f.kind.kindBelow(name)
	if !f.bare || k != plain {
		return k
	}
	if as := gitDir.kindBelow(name); as != gitData || gitStores(name) {
		return as
	}
	return k
}

// isGit reports whether git reads the directory as its own.
func (f *directory) isGit() bool { return f.kind.isGit() || f.bare }

// base is the directory that counts when it is asked who made something: of the parts of a
// git directory the directory, of .cargo/config.toml that which holds .cargo.
func (f *directory) base(n names) *directory {
	for f.kind != plain && !f.isGit() && f.parent != nil {
		f = f.parent
	}
	if f.kind == plain && f.parent != nil && n.nested[f.name] != nil {
		f = f.parent
	}
	return f
}

type tree struct {
	roots   []*directory
	byID    map[nofollow.ID]*directory
	watch   map[int32]*directory
	most    int                     // watches
	short   bool                    // of watches
	holders map[*directory]struct{} // directories in which something protected is, or may be
	dark    map[*directory]struct{} // not watched
	closed  map[*directory]struct{} // not readable
	again   map[*directory]struct{} // could not be opened where they should be: to be read again
	lost    map[*directory]struct{} // see directory.lost
	unseen  []*directory            // to be read before it is known what calls have left
	full    bool                    // with all directories below them
	drains  uint64                  // how often the queue was empty, or too short
	gap     uint64                  // the least directory.read of those that were read since the queue was too short
	former  map[string]former       // directories that were moved or removed while calls run, by path
}

// former is the first directory that was under a path.
type former struct {
	seen uint64
	born time.Time
}

// mostFormer bounds tree.former. With more, calls count as having made no directory.
const mostFormer = 1 << 16

func newTree(most int) tree {
	return tree{
		drains: 1, gap: 1, byID: map[nofollow.ID]*directory{}, watch: map[int32]*directory{}, most: most, holders: map[*directory]struct{}{},
		dark: map[*directory]struct{}{}, closed: map[*directory]struct{}{}, again: map[*directory]struct{}{}, lost: map[*directory]struct{}{}, former: map[string]former{},
	}
}

func (f *directory) is(in nofollow.Info) bool { return f.id == in.ID && f.born.Equal(in.Born) }

// look notes that names in a directory are looked at, after the events that wait.
func (t *tree) look(f *directory) {
	if f.read >= t.gap {
		f.read = t.drains
	}
}

// exact reports whether what is known of a directory is what it was before the event at hand:
// the events of a directory come in the order of what was done there (fsnotify_move in the
// kernel, which has it locked), and all that came before the latest look have been handled.
func (t *tree) exact(f *directory) bool { return t.gap <= f.read && f.read < t.drains }

func (f *directory) put(sub *directory) {
	if f.children == nil {
		f.children = map[string]*directory{}
	}
	f.children[sub.name] = sub
}

// detach removes a directory from the one that it is in, unless another has its name.
func (f *directory) detach() {
	if f.parent != nil && f.parent.children[f.name] == f {
		delete(f.parent.children, f.name)
	}
}

// below reports whether f is top or in it.
func (f *directory) below(top *directory) bool {
	for ; f != nil; f = f.parent {
		if f == top {
			return true
		}
	}
	return false
}
