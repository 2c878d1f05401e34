package protect

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// A watch descriptor identifies the directory, even after a move (inotify_add_watch(2)).
const (
	watched  = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
	replaced = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE
)

func (w *Watcher) addRoot(path string) {
	f := &directory{name: path, wd: -1, root: true}
	w.tree.roots = append(w.tree.roots, f)
	w.tree.todo = append(w.tree.todo, f)
}

// scan reads new directories and everything new below them, outermost first. It leaves what takes long to pump.
func (w *Watcher) scan(next []*directory) {
	t := &w.tree
	t.todo = append(t.todo, next...)
	for ; len(t.todo) > 0 && t.left > 0; t.left-- {
		f := t.todo[0]
		t.todo = append(t.todo[1:], w.read(f)...)
	}
	w.here.close()
}

func (w *Watcher) read(f *directory) []*directory {
	if w.closed || f.kind == forgotten {
		return nil
	}
	if f.depth() > Deepest {
		w.tooDeep(f)
		return nil
	}
	dir, in, err := w.openDir(f)
	if err != nil {
		if err != unix.EACCES && !f.root {
			w.tree.retry(f) // it was moved, and is found again or forgotten later
		}
		return nil
	}
	defer dir.Close()
	if f.id != (nofollow.ID{}) && !f.is(in) {
		return w.exchange(f, in)
	}
	if f.id == (nofollow.ID{}) {
		was := w.tree.byID[in.ID]
		isOther := was != nil && was != f
		if isOther && !f.root && w.hasMoved(was, f, in) {
			w.drop(f)
			return w.attach(was, f.parent, f.name)
		}
		w.know(f, in)
		w.countGit(f)
	}
	w.addWatch(f, dir)
	entries, err := dir.ReadDir(-1) // a partial list suffices
	if err == nil {
		f.read = w.tree.drains
	}
	found := w.compare(f, entries)
	w.list(f, entries, false)
	f.unread = false
	return found
}

// openDir opens a directory for reading through its known parent, since another may have its path. A directory
// without permissions is read after the call that removed them has ended.
func (w *Watcher) openDir(f *directory) (*os.File, nofollow.Info, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	if f.lost {
		return nil, nofollow.Info{}, unix.ENOENT
	}
	path := f.path()
	fd, err := -1, error(nil)
	if f.parent == nil {
		fd, err = nofollow.Open(path, flags)
	} else if fd, err = w.at(f.parent); err == nil {
		fd, err = nofollow.OpenAt(fd, f.name, flags)
	}
	if err == unix.EACCES {
		w.tree.closed[f] = struct{}{}
		f.unread = true
	}
	if err != nil {
		return nil, nofollow.Info{}, err
	}
	in, err := nofollow.Stat(fd, "")
	if err != nil {
		unix.Close(fd)
		return nil, nofollow.Info{}, err
	}
	delete(w.tree.closed, f)
	return os.NewFile(uintptr(fd), path), in, nil
}

func (w *Watcher) exchange(f *directory, in nofollow.Info) []*directory {
	if f.root {
		w.forgetID(f)
		w.know(f, in)
		return w.read(f)
	}
	parent := f.parent
	w.lose(f)
	w.tree.retry(f)
	return w.enter(parent, f.name, in)
}

func (w *Watcher) know(f *directory, in nofollow.Info) {
	f.id, f.born = in.ID, in.Born
	if w.tree.byID[f.id] == nil {
		w.tree.byID[f.id] = f
	}
}

func (w *Watcher) compare(f *directory, entries []fs.DirEntry) (found []*directory) {
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = true
	}
	if f.kind == plain && !f.bare && isBare(func(name string) bool { return there[name] }) {
		w.becomeBare(f)
	}
	for _, e := range entries {
		w.judge(f, e.Name(), e.Type())
		switch sub := f.children[e.Name()]; {
		case e.IsDir() && sub == nil:
			found = append(found, w.add(f, e.Name()))
		case !e.IsDir() && sub != nil:
			w.lose(sub)
		}
	}
	for name, sub := range f.children {
		if !there[name] {
			w.lose(sub)
		}
	}
	for name := range f.held {
		if !there[name] {
			w.release(f, name)
		}
	}
	return found
}

func (w *Watcher) add(f *directory, name string) *directory {
	sub := &directory{
		name: name, parent: f, kind: f.kindBelow(name), wd: -1, seen: w.calls,
		library: f.library || slices.Contains(dependencies, name), unread: f.unread, listed: w.tree.pass - 1,
	}
	w.tree.look(f)
	f.put(sub)
	if sub.kind.isGit() || sub.kind == unfinished {
		w.hold(sub)
	}
	return sub
}

// addWatch watches an open directory unless it is already watched.
func (w *Watcher) addWatch(f *directory, dir *os.File) {
	t := &w.tree
	if f.wd >= 0 {
		return
	}
	t.unwatched[f] = struct{}{}
	if len(t.watch) >= t.most {
		t.short = true
		return
	}
	mask := uint32(watched)
	if f.isGit() {
		mask |= unix.IN_CLOSE_WRITE
	}
	wd, err := unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), mask)
	if err != nil {
		t.short = true
		return
	}
	if was := t.watch[int32(wd)]; was != nil {
		if w.isThere(was) {
			return // it is mounted twice, with one watch descriptor for both
		}
		was.wd = -1
		t.unwatched[was], t.again[was], t.byID[f.id] = struct{}{}, struct{}{}, f
	}
	f.wd = int32(wd)
	t.watch[f.wd] = f
	delete(t.unwatched, f)
}

func (w *Watcher) watchMore(f *directory) {
	dir, err := w.openDirectory(f)
	if err != nil || f.wd < 0 {
		return
	}
	defer unix.Close(dir)
	_, _ = unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", dir), watched|unix.IN_CLOSE_WRITE)
}

// hold marks a directory that may contain protected names.
func (w *Watcher) hold(f *directory) {
	w.tree.holders[f] = struct{}{}
	w.existing = nil
}

func (w *Watcher) release(f *directory, name string) {
	if f.held[name] {
		delete(f.held, name)
		w.existing = nil
	}
}

// lose records that a directory has lost its name. Unless it is found again, it is forgotten.
func (w *Watcher) lose(f *directory) {
	w.depart(f)
	f.detach()
	if w.leads(f.path()) {
		w.existing = nil
	}
	f.lost = true
	w.tree.lost[f] = struct{}{}
}

func (w *Watcher) attach(f, parent *directory, name string) []*directory {
	keeps := w.keeps(f, parent, name, parent.path()+"/"+name)
	if !f.lost {
		w.tree.retry(f.parent) // something else may have its old name
	}
	if !keeps {
		w.depart(f)
		w.drop(f)
		sub := w.add(parent, name)
		sub.seen = f.seen
		return []*directory{sub}
	}
	if !f.lost {
		w.lose(f)
	}
	if old := parent.children[name]; old != nil {
		w.lose(old)
	}
	from := f.path()
	w.tree.look(parent)
	w.hang(f, parent, name)
	w.moved(f, from)
	if w.tree.full {
		w.tree.unseen = append(w.tree.unseen, f) // it may have been skipped under its old name
	}
	return nil
}

// keeps reports whether a known directory has the same role under a name in parent.
func (w *Watcher) keeps(f, parent *directory, name, path string) bool {
	library := parent.library || slices.Contains(dependencies, name)
	isDeep := parent.depth()+1+f.height > Deepest
	if isDeep || f.unread {
		return false
	}
	if f.library != library || f.kind != parent.kindBelow(name) {
		return false
	}
	if w.names.nested[f.name] != nil || w.names.nested[name] != nil || w.linksBelow(path) {
		return false
	}
	return !w.tree.succeeds(path, func(former) bool { return true }) || !w.mayBeOwn(f)
}

func (w *Watcher) hang(f, parent *directory, name string) {
	delete(w.tree.lost, f)
	f.lost, f.name, f.parent = false, name, parent
	parent.put(f)
	for holder := range w.tree.holders {
		if w.existing != nil && holder.below(f) {
			w.existing = nil
		}
	}
}

func (w *Watcher) drop(f *directory) {
	f.detach()
	for next := []*directory{f}; len(next) > 0; next = next[1:] {
		f := next[0]
		next = slices.AppendSeq(next, maps.Values(f.children))
		if _, holds := w.tree.holders[f]; holds {
			delete(w.tree.holders, f)
			w.existing = nil
		}
		w.forgetID(f)
		for _, set := range []map[*directory]struct{}{w.tree.unwatched, w.tree.closed, w.tree.again, w.tree.lost, w.tree.deep} {
			delete(set, f)
		}
		f.kind = forgotten
	}
}

func (w *Watcher) forgetID(f *directory) {
	if f.wd >= 0 {
		delete(w.tree.watch, f.wd)
		_, _ = unix.InotifyRmWatch(w.fd, uint32(f.wd)) // the kernel may have removed it
		f.wd = -1
	}
	if w.tree.byID[f.id] == f {
		delete(w.tree.byID, f.id)
	}
	f.id = nofollow.ID{}
}
