package protect

import (
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// kind is the role of a directory in git.
type kind int

const (
	plain  kind = iota // a directory of the project
	gitDir             // .git, or the git directory of a module
	gitInfo
	hooks   // hooks, remotes and branches
	modules // modules, and directories in it that are git directories or contain some
	worktrees
	worktree   // a directory in worktrees
	unfinished // state of a rebase, or of a sequence of picks
	gitData    // anything else in a git directory
	forgotten  // removed
)

func (k kind) isGit() bool { return k == gitDir || k == modules || k == worktree }

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
	below, known := gitKinds[name]
	switch {
	case known:
		return below
	case k == modules && !gitStores(name):
		return modules // a module's name may contain slashes
	case k == gitDir && slices.Contains(oldRemotes, name): // a module may have such a name
		return hooks
	}
	return gitData
}

var gitKinds = map[string]kind{
	"hooks": hooks, "info": gitInfo, "modules": modules, "worktrees": worktrees,
	"rebase-merge": unfinished, "rebase-apply": unfinished, "sequencer": unfinished,
}

// oldRemotes are directories with a file for each remote.
var oldRemotes = []string{"remotes", "branches"}

// gitStores reports whether git keeps only data in a directory with this name.
func gitStores(name string) bool {
	switch name {
	case "objects", "refs", "logs", "lfs":
		return true
	}
	return false
}

type directory struct {
	name     string // path of a root
	parent   *directory
	children map[string]*directory
	height   int // maximum nesting of the directories below it
	kind     kind
	root     bool
	bare     bool // it is a git directory itself
	library  bool // in or below a directory of dependencies
	gitFile  bool
	unread   bool   // it could not be read when it was found, so its contents may be old
	lost     bool   // moved or removed from its name
	matters  bool   // something in or below it matters to the Observer
	pass     uint64 // pass in which the Observer receives it again after a move; 0 = none
	listed   uint64 // latest pass in which the Observer received it, or that began before it was found

	wd   int32 // -1 = not watched
	id   nofollow.ID
	born time.Time // zero if the file system does not record it
	seen uint64    // number of the latest call when it was found
	read uint64    // tree.drains when it was last read; less than tree.gap = not since events were lost
	held map[string]bool
}

// isKnown reports whether a directory is watched, was read, and is distinguishable from another with its inode.
func (f *directory) isKnown() bool { return f.wd >= 0 && !f.unread && !f.born.IsZero() }

func (f *directory) path() string {
	parts := []string{f.name}
	for p := f.parent; p != nil; p = p.parent {
		parts = append(parts, p.name)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

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

func (f *directory) isGit() bool { return f.kind.isGit() || f.bare }

// base returns the directory that determines who created something: the git directory for its parts, the parent of
// .cargo for .cargo/config.toml.
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
	roots     []*directory
	byID      map[nofollow.ID]*directory
	watch     map[int32]*directory
	most      int                     // maximum number of watches
	short     bool                    // there are not enough watches
	holders   map[*directory]struct{} // may contain something protected
	unwatched map[*directory]struct{}
	closed    map[*directory]struct{} // not readable
	again     map[*directory]struct{} // could not be opened; to be read again
	lost      map[*directory]struct{} // see directory.lost
	deep      map[*directory]struct{} // nested deeper than Deepest: neither watched nor read
	todo      []*directory            // new directories to read, outermost first
	left      int                     // how many of them to read before mu is released
	moved     []movedOne              // see listMoved; sorted by pass
	pass      uint64                  // pass of what moves now
	unseen    []*directory            // to be read before what calls have left is known
	full      bool                    // and all directories below them
	drains    uint64                  // how often the queue was empty, or overflowed
	gap       uint64                  // smallest directory.read since the queue overflowed
	former    map[string]former       // first directories that were moved or removed from a path while calls run
}

type former struct {
	seen uint64
	born time.Time
}

// mostFormer limits tree.former. Beyond it, no directory counts as created by a call.
const mostFormer = 1 << 16

func newTree(most int) tree {
	return tree{
		drains: 1, gap: 1, pass: 1, byID: map[nofollow.ID]*directory{}, watch: map[int32]*directory{}, most: most, holders: map[*directory]struct{}{},
		unwatched: map[*directory]struct{}{}, closed: map[*directory]struct{}{}, again: map[*directory]struct{}{}, lost: map[*directory]struct{}{}, deep: map[*directory]struct{}{}, former: map[string]former{},
	}
}

func (f *directory) is(in nofollow.Info) bool { return f.id == in.ID && f.born.Equal(in.Born) }

func (t *tree) pending() bool { return len(t.unseen)+len(t.todo) > 0 }

// retry schedules a directory, which may be nil, to be read again when the queue is empty.
func (t *tree) retry(f *directory) {
	if f != nil {
		t.again[f] = struct{}{}
	}
}

// look records that names in a directory are read after pending events.
func (t *tree) look(f *directory) {
	if f.read >= t.gap {
		f.read = t.drains
	}
}

// exact reports whether the state of a directory is the one before the current event: its events are in the order of
// its changes (fsnotify_move in the kernel, which locks it), and all events before the latest read were handled.
func (t *tree) exact(f *directory) bool { return t.gap <= f.read && f.read < t.drains }

func (f *directory) put(sub *directory) {
	if f.children == nil {
		f.children = map[string]*directory{}
	}
	f.children[sub.name] = sub
	for high := sub.height + 1; f != nil && f.height < high; f, high = f.parent, high+1 {
		f.height = high
	}
}

func (f *directory) depth() (n int) {
	for ; f.parent != nil; f = f.parent {
		n++
	}
	return n
}

func (f *directory) detach() {
	if f.parent != nil && f.parent.children[f.name] == f {
		delete(f.parent.children, f.name)
	}
}

func (f *directory) below(top *directory) bool {
	for ; f != nil; f = f.parent {
		if f == top {
			return true
		}
	}
	return false
}
