package protect

import (
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// The events of a directory have a number that goes with the directory itself,
// wherever it is moved, and not with its path (inotify_add_watch(2)).
const (
	watched  = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
	replaced = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE
)

func (w *Watcher) addRoot(path string) {
	f := &folder{name: path, wd: -1, root: true}
	w.tree.roots = append(w.tree.roots, f)
	w.scan([]*folder{f})
}

// scan reads folders and all that is new below them, those above first: if the watches
// do not suffice, the deepest have none.
func (w *Watcher) scan(next []*folder) {
	for len(next) > 0 {
		f := next[0]
		next = append(next[1:], w.read(f)...)
	}
}

// read watches a folder, judges what is in it and returns the folders in it that are
// new. What comes after the listing comes as an event.
func (w *Watcher) read(f *folder) []*folder {
	if f.kind == forgotten || f.lost {
		return nil
	}
	dir, in, err := w.openFolder(f)
	if err != nil {
		return nil
	}
	defer dir.Close()
	if f.id != (fileID{}) && (f.id != in.id || !f.born.Equal(in.born)) {
		return w.exchange(f, in)
	}
	if f.id == (fileID{}) {
		if was := w.movedHere(f, in); was != nil {
			return was
		}
	}
	w.addWatch(f, dir)
	entries, _ := dir.ReadDir(-1) // what could be read counts
	found := w.compare(f, entries)
	f.unread = false
	return found
}

// openFolder opens a folder for reading. One that is closed to us is read when the call
// that closed it has ended.
func (w *Watcher) openFolder(f *folder) (*os.File, info, error) {
	path := f.path()
	fd, err := openPath(path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == unix.EACCES {
		w.tree.closed[f] = struct{}{}
		f.unread = true
	}
	if err != nil {
		return nil, info{}, err
	}
	in, err := statAt(fd, "")
	if err != nil {
		unix.Close(fd)
		return nil, info{}, err
	}
	delete(w.tree.closed, f)
	return os.NewFile(uintptr(fd), path), in, nil
}

// exchange takes what is now under the name of a folder for what it is.
func (w *Watcher) exchange(f *folder, in info) []*folder {
	if f.root {
		w.forgetID(f)
		w.know(f, in)
		return w.read(f)
	}
	parent := f.parent
	w.lose(f)
	if sub := w.enterName(parent, f.name, in); sub != nil {
		return []*folder{sub}
	}
	return nil
}

// know notes which directory a folder is.
func (w *Watcher) know(f *folder, in info) {
	f.id, f.born = in.id, in.born
	if w.tree.byID[f.id] == nil {
		w.tree.byID[f.id] = f
	}
}

// movedHere looks whether a folder that was found is one that is known from elsewhere. If
// so that one takes the place of f, and what is to be read again is returned.
func (w *Watcher) movedHere(f *folder, in info) (next []*folder) {
	was := w.tree.byID[in.id]
	if was == nil || was == f || !was.born.Equal(in.born) || f.root || f.below(was) || !was.lost && w.isThere(was) {
		w.know(f, in)
		return nil
	}
	parent := f.parent
	w.drop(f)
	if sub := w.attach(was, parent, f.name); sub != nil {
		return []*folder{sub}
	}
	return []*folder{}
}

// isThere reports whether a folder is where it was seen last.
func (w *Watcher) isThere(f *folder) bool {
	fd, err := openPath(f.path(), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	in, err := statAt(fd, "")
	return err == nil && in.id == f.id
}

// compare takes notice of all that is in a folder, and of what is not any more.
func (w *Watcher) compare(f *folder, entries []fs.DirEntry) (found []*folder) {
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

// add makes a folder for a directory in f.
func (w *Watcher) add(f *folder, name string) *folder {
	sub := &folder{
		name: name, parent: f, kind: f.kindBelow(name), wd: -1, seen: w.calls,
		library: f.library || slices.Contains(dependencies, name), unread: f.unread,
	}
	if f.children == nil {
		f.children = map[string]*folder{}
	}
	f.children[name] = sub
	if sub.kind.isGit() || sub.kind == rebase {
		w.hold(sub)
	}
	return sub
}

// addWatch watches a folder that is open, unless it is.
func (w *Watcher) addWatch(f *folder, dir *os.File) {
	t := &w.tree
	if f.wd >= 0 {
		return
	}
	t.dark[f] = struct{}{}
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
	if t.watch[int32(wd)] != nil {
		return // it is mounted at two places, with one number for both
	}
	f.wd = int32(wd)
	t.watch[f.wd] = f
	delete(t.dark, f)
}

// watchMore watches a folder that has become a git directory for what counts there.
func (w *Watcher) watchMore(f *folder) {
	dir, err := w.openDirectory(f)
	if err != nil || f.wd < 0 {
		return
	}
	defer unix.Close(dir)
	_, _ = unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", dir), watched|unix.IN_CLOSE_WRITE)
}

// hold marks a folder as one in which something protected is or may be.
func (w *Watcher) hold(f *folder) {
	w.tree.holders[f] = struct{}{}
	w.existing = nil
}

// release notes that a protected name is gone from a folder.
func (w *Watcher) release(f *folder, name string) {
	if f.held[name] {
		delete(f.held, name)
		w.existing = nil
	}
}

// lose notes that a folder is not under its name any more. If it does not turn up under
// another one it is forgotten once all events have been read.
func (w *Watcher) lose(f *folder) {
	if f.parent != nil && f.parent.children[f.name] == f {
		delete(f.parent.children, f.name)
	}
	if w.leads(f.path()) {
		w.existing = nil
	}
	f.lost = true
	w.tree.lost[f] = struct{}{}
}

// attach gives a folder that was moved its new name. It returns what is to be read
// because other things count there.
func (w *Watcher) attach(f *folder, parent *folder, name string) *folder {
	k, library := parent.kindBelow(name), parent.library || slices.Contains(dependencies, name)
	if f.kind != k || f.library != library || w.names.nested[f.name] != nil || w.names.nested[name] != nil || f.unread || w.linksBelow(parent.path()+"/"+name) {
		w.drop(f)
		sub := w.add(parent, name)
		sub.seen = f.seen
		return sub
	}
	if !f.lost {
		w.tree.again[f.parent] = struct{}{} // something else may have its old name
		w.lose(f)
	}
	if old := parent.children[name]; old != nil {
		w.lose(old)
	}
	delete(w.tree.lost, f)
	f.lost, f.name, f.parent = false, name, parent
	if parent.children == nil {
		parent.children = map[string]*folder{}
	}
	parent.children[name] = f
	w.existing = w.unlessHeld(f)
	return nil
}

// unlessHeld is what is known to exist, unless that is in f.
func (w *Watcher) unlessHeld(f *folder) []string {
	for holder := range w.tree.holders {
		if holder.below(f) {
			return nil
		}
	}
	return w.existing
}

// drop forgets a folder and all that is below it.
func (w *Watcher) drop(f *folder) {
	if f.parent != nil && f.parent.children[f.name] == f {
		delete(f.parent.children, f.name)
	}
	for next := []*folder{f}; len(next) > 0; next = next[1:] {
		f := next[0]
		for _, sub := range f.children {
			next = append(next, sub)
		}
		if _, holds := w.tree.holders[f]; holds {
			delete(w.tree.holders, f)
			w.existing = nil
		}
		w.forgetID(f)
		for _, set := range []map[*folder]struct{}{w.tree.dark, w.tree.closed, w.tree.again, w.tree.lost} {
			delete(set, f)
		}
		f.kind = forgotten
	}
}

// forgetID ends the watch of a directory.
func (w *Watcher) forgetID(f *folder) {
	if f.wd >= 0 {
		delete(w.tree.watch, f.wd)
		_, _ = unix.InotifyRmWatch(w.fd, uint32(f.wd)) // the kernel may have done so
		f.wd = -1
	}
	if w.tree.byID[f.id] == f {
		delete(w.tree.byID, f.id)
	}
	f.id = fileID{}
}
