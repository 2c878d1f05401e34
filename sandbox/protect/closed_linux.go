package protect

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// openClosed reads directories whose permissions a call had removed, after its end.
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

// opened opens a directory that calls may have closed, and reports whether it is where it was last seen.
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

// openUp makes a directory and its ancestors accessible, from the top, if changed since then.
func (f *directory) openUp(since time.Time) {
	root := f
	for root.parent != nil {
		root = root.parent
	}
	_ = nofollow.OpenUpTo(root.name, f.path(), since) // then it stays closed
}

// lstat examines a path. It opens the directories below the roots that calls may have closed: EACCES
// means that one was closed again.
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
