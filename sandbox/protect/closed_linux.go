package protect

import (
	"time"

	"golang.org/x/sys/unix"
)

// openClosed reads the folders that were closed to us, now that a call has ended which
// may have closed them.
func (w *Watcher) openClosed(c *Call) {
	tried := map[*folder]bool{}
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

// opened opens a folder in which something was found, if it has been closed since.
func (w *Watcher) opened(f *folder) {
	dir, err := w.openDirectory(f)
	if err == nil {
		_, err = statAt(dir, ".")
		unix.Close(dir)
	}
	if err == unix.EACCES {
		f.openUp(time.Time{})
	}
}

// openUp opens a folder and those above it, from the top and by descriptors, which have
// been closed since a call began.
func (f *folder) openUp(since time.Time) {
	var names []string
	for ; f.parent != nil; f = f.parent {
		names = append(names, f.name)
	}
	fd, err := openPath(f.name, unix.O_PATH|unix.O_DIRECTORY)
	for i := len(names) - 1; err == nil; i-- {
		if in, err := statAt(fd, ""); err == nil && !in.changed.Before(since) {
			_, _ = openUp(fd)
		}
		if i < 0 {
			break
		}
		var next int
		next, err = openIn(fd, names[i], unix.O_PATH|unix.O_DIRECTORY)
		unix.Close(fd)
		fd = next
	}
	if err == nil {
		unix.Close(fd)
	}
}
