package guard

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// The news of a folder have a number that goes with the folder itself, wherever it is
// moved, and not with its path (inotify_add_watch(2)).

const newsOf = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_DELETE | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// number is the number of the news of an open folder, which come from now on.
func (g *Guard) number(dir *os.File) (int32, error) {
	wd, err := unix.InotifyAddWatch(g.fd, fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), newsOf)
	return int32(wd), err
}

// addWatch watches a folder that is open, unless it is.
func (g *Guard) addWatch(f *folder, dir *os.File) {
	t := &g.tree
	if f.wd >= 0 {
		return
	}
	t.darken(f)
	if len(t.watch) >= t.most {
		t.limit = true
		return
	}
	wd, err := g.number(dir)
	if err != nil {
		t.limit = true
		return
	}
	if was := t.watch[wd]; was != nil {
		if isAt(was.path(), dir) {
			return // mounted at two places: one number for both
		}
		was.wd = -1 // moved here, of which the news are still to come
		t.darken(was)
	}
	f.wd = wd
	t.watch[wd] = f
	delete(t.dark, f)
}

// darken notes that a folder is not watched, so that it is looked through at the end of
// each call.
func (t *tree) darken(f *folder) {
	if t.dark == nil {
		t.dark = map[*folder]struct{}{}
	}
	t.dark[f] = struct{}{}
}

// another tells whether what is open under the path of a watched folder is another
// one, whose coming was not told. That one is watched then, if it can be.
func (g *Guard) another(f *folder, dir *os.File) bool {
	if f.wd < 0 {
		return false
	}
	wd, err := g.number(dir)
	if err == nil && wd == f.wd {
		return false
	}
	delete(g.tree.watch, f.wd)
	_, _ = unix.InotifyRmWatch(g.fd, uint32(f.wd)) // the kernel may have done so
	f.wd = -1
	return true
}

// anew forgets a folder, and returns what is in its place now.
func (g *Guard) anew(f *folder) []*folder {
	g.forget(f)
	if sub := g.meet(f.parent, f.name, fs.ModeDir); sub != nil {
		return []*folder{sub}
	}
	return nil
}

// isAt tells whether an open folder is what is at a path.
func isAt(path string, dir *os.File) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	here, err := dir.Stat()
	return err == nil && os.SameFile(there, here)
}
