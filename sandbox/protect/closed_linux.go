package protect

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// openClosed reads directories whose permissions the call had removed.
func (w *Watcher) openClosed(c *Call) {
	tried := map[*directory]bool{}
	for again := true; again; {
		again = false
		for f := range w.tree.closed {
			if tried[f] || f.lost {
				continue
			}
			tried[f], again = true, true
			f.openUp(c.Since)
			w.scan(w.read(f))
		}
	}
}

// opened restores permissions that calls may have removed, and reports whether the directory is still at its path.
func (w *Watcher) opened(f *directory) bool {
	dir, err := w.openDirectory(f)
	if err == nil {
		_, err = nofollow.Stat(dir, ".")
		unix.Close(dir)
	}
	if err == unix.EACCES {
		f.openUp(time.Time{})
	}
	return err == nil
}

// openUp makes a directory and its ancestors accessible, from the top, where they have changed since a time.
func (f *directory) openUp(since time.Time) {
	root := f
	for root.parent != nil {
		root = root.parent
	}
	_ = nofollow.OpenUpTo(root.name, f.path(), since) // otherwise it remains inaccessible
}

// lstat examines a path. It restores permissions that calls may have removed from directories below the roots. EACCES
// means that they were removed again.
func (w *Watcher) lstat(path string) (nofollow.Info, error) {
	in, err := nofollow.Lstat(path)
	for _, root := range w.options.Roots {
		if _, below := inside(path, root); !below || err != unix.EACCES {
			continue
		}
		if err = nofollow.OpenUpTo(root, filepath.Dir(path), time.Time{}); err == nil {
			in, err = nofollow.Lstat(path)
		}
	}
	return in, err
}
