package guard

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// kind is what a folder is to git.
type kind int

const (
	plain     kind = iota // a folder of the project
	gitDir                // .git, or a module's
	gitInfo               // info in a git folder
	hooks                 // hooks in a git folder
	modules               // modules in a git folder, and folders in it that are git folders or hold some
	worktrees             // worktrees in a git folder
	worktree              // a folder in worktrees
	ignored               // of no interest
)

func (k kind) isGit() bool { return k == gitDir || k == modules || k == worktree }

// kindBelow is what a folder of this name is in one of kind k.
func (k kind) kindBelow(name string) kind {
	switch {
	case k == plain && name == ".git":
		return gitDir
	case k == plain:
		return plain
	case k == worktrees:
		return worktree
	case !k.isGit():
		return ignored
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
	}
	if k == modules && !gitStores(name) {
		return modules // a module's name may have slashes
	}
	return ignored
}

// kindBelow is what a folder of this name is in f.
func (f *folder) kindBelow(name string) kind {
	k := f.kind.kindBelow(name)
	if !f.bare || k != plain {
		return k
	}
	switch as := gitDir.kindBelow(name); {
	case as != ignored:
		return as
	case gitStores(name):
		return ignored
	}
	return k
}

// gitStores tells which folders of git's hold nothing but data.
func gitStores(name string) bool {
	return name == "objects" || name == "refs" || name == "logs" || name == "lfs"
}

// folder is one watched folder.
type folder struct {
	name     string // of a root: its path
	parent   *folder
	children map[string]*folder
	kind     kind
	wd       int32 // -1: it cannot be watched

	root    bool
	fresh   bool // found while a call ran, and not yet known to be nobody's
	obeyed  bool // a root, or a repository that is not fresh: all names count
	gitFile bool // it holds a .git that is a file
	bare    bool // it is a git folder itself
}

func (f *folder) path() string {
	if f.parent == nil {
		return f.name
	}
	return f.parent.path() + "/" + f.name
}

// tree is what is known of the roots.
type tree struct {
	watch   map[int32]*folder
	most    int                  // watches
	holders map[*folder]struct{} // folders in which names count
	fresh   []*folder
	dark    map[*folder]struct{} // folders without a watch
	limit   bool                 // for want of watches
	looks   int                  // how many are looked through at the end of a call
	unseen  []*folder            // of dark and new ones: not yet looked through since a call ran
}

// watches leaves other programs of this user their share of the kernel's limit.
func (o Options) watches() int {
	if o.Watches > 0 {
		return o.Watches
	}
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	n, err2 := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || err2 != nil {
		return 4096
	}
	return min(n/2, 1<<16)
}

func (t *tree) blind() string {
	if !t.limit && len(t.unseen) == 0 {
		return ""
	}
	return blindness(len(t.dark), len(t.unseen) > 0)
}

// blindness tells of folders that are not watched.
func blindness(dark int, unseen bool) string {
	if unseen {
		return fmt.Sprintf("%d folders of the workspace are not watched, more than can be looked through before a call returns. What appeared in them under a protected name is taken away as soon as it is found, until then do not trust it (raise fs.inotify.max_user_watches, or work in a smaller folder)", dark)
	}
	return fmt.Sprintf("%d folders of the workspace are not watched, but looked through at the end of each call (fs.inotify.max_user_watches is used up)", dark)
}

// Survey counts the folders that a Guard of these roots would have to watch, and tells
// what its Blind would. It watches nothing and changes nothing.
func Survey(o Options) (folders int, why string, unseen bool) {
	g := &Guard{options: o, names: sortNames(o.Names), unproven: map[string]*folder{}}
	for _, root := range o.Roots {
		g.addRoot(root)
	}
	folders = len(g.tree.dark)
	if dark := folders - o.watches(); dark > 0 {
		unseen = dark > mostDark
		why = blindness(dark, unseen)
	}
	return folders, why, unseen
}

func (g *Guard) addRoot(path string) {
	f := &folder{name: path, kind: plain, wd: -1, root: true, obeyed: true}
	g.hold(f)
	g.scan([]*folder{f})
}

// hold marks a folder as one in which names count.
func (g *Guard) hold(f *folder) {
	if g.tree.holders == nil {
		g.tree.holders = map[*folder]struct{}{}
	}
	g.tree.holders[f] = struct{}{}
	g.existing = nil
}

// scan looks through folders and all that is new below them, those above first:
// should the watches not suffice, it is the deepest that have none.
func (g *Guard) scan(next []*folder) {
	for len(next) > 0 {
		f := next[0]
		next = append(next[1:], g.enter(f)...)
	}
}

// enter watches a folder, judges what is in it and returns the folders in it that
// are new. What comes after the listing comes as news.
func (g *Guard) enter(f *folder) []*folder {
	if f.kind == ignored {
		return nil // forgotten since
	}
	dir, err := g.open(f)
	if err != nil {
		if err == unix.EACCES && f.fresh {
			g.tree.darken(f) // somebody closes it all the time: once more when the call ends
		}
		return nil
	}
	defer dir.Close()
	if g.another(f, dir) && !f.root {
		return g.anew(f)
	}
	g.addWatch(f, dir)
	entries, _ := dir.ReadDir(-1) // what could be read counts
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = true
	}
	if !f.bare && f.kind == plain && isBare(func(name string) bool { return there[name] }) {
		g.becomeBare(f)
	}
	var found []*folder
	obeyed := f.obeyed
	for _, e := range entries {
		if sub := g.meet(f, e.Name(), e.Type()); sub != nil {
			found = append(found, sub)
		}
	}
	if f.obeyed && !obeyed { // its .git came after names that count now
		for _, e := range entries {
			g.judge(f, e.Name(), e.Type())
		}
	}
	for name, sub := range f.children {
		if !there[name] {
			g.forget(sub)
		}
	}
	return found
}

// open opens a folder to list it, without following links. One that its maker
// has closed to us is opened up, with those above it, if a call can have made it.
func (g *Guard) open(f *folder) (*os.File, error) {
	path := f.path()
	fd, err := openFolder(path)
	if err == unix.EACCES && f.fresh {
		f.openUp()
		fd, err = openFolder(path)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// openUp gives us the rights to a folder, after those above it that calls can have made.
func (f *folder) openUp() {
	if f.parent != nil && f.parent.fresh {
		f.parent.openUp()
	}
	if fd, err := openPath(f.path()); err == nil {
		_, _ = openUp(fd)
		unix.Close(fd)
	}
}

// openPath opens a directory to look at it alone, which takes no right to it.
func openPath(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

func openFolder(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// meet takes notice of what is in a folder under a name. It returns the folder
// that is to be entered, if there is a new one.
func (g *Guard) meet(f *folder, name string, mode fs.FileMode) *folder {
	g.judge(f, name, mode)
	if !mode.IsDir() {
		if old := f.children[name]; old != nil {
			g.forget(old)
		}
		return nil
	}
	k := f.kindBelow(name)
	if k == ignored || f.children[name] != nil {
		return nil
	}
	sub := &folder{name: name, parent: f, kind: k, wd: -1}
	if len(g.active) > 0 || g.late.made(sub.path()) {
		sub.fresh = true
		g.tree.fresh = append(g.tree.fresh, sub)
	}
	if f.children == nil {
		f.children = map[string]*folder{}
	}
	f.children[name] = sub
	if k.isGit() {
		g.hold(sub)
	}
	if k == gitDir && f.kind == plain {
		g.repository(f, sub.fresh)
	}
	return sub
}

// repository notes that a folder is a repository's. One that a call has just made
// is its own as far as files like .envrc are concerned, until it is known.
func (g *Guard) repository(f *folder, fresh bool) {
	if !fresh {
		f.obeyed = true
	}
	g.hold(f)
}

// forget drops a folder that is gone or is another's now.
func (g *Guard) forget(f *folder) {
	if f.parent != nil && f.parent.children[f.name] == f {
		delete(f.parent.children, f.name)
	}
	for next := []*folder{f}; len(next) > 0; next = next[1:] {
		f := next[0]
		for _, sub := range f.children {
			next = append(next, sub)
		}
		if f.wd >= 0 {
			delete(g.tree.watch, f.wd)
			_, _ = unix.InotifyRmWatch(g.fd, uint32(f.wd)) // the kernel may have done so
		}
		if _, held := g.tree.holders[f]; held {
			delete(g.tree.holders, f)
			g.existing = nil
		}
		delete(g.tree.dark, f)
		f.wd, f.kind = -1, ignored
	}
}
