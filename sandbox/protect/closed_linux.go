package protect

import (
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

func (w *Watcher) opened(f *directory) {
	dir, err := w.openDirectory(f)
	if err == nil {
		_, err = nofollow.Stat(dir, ".")
		unix.Close(dir)
	}
	if err == unix.EACCES {
		f.openUp(time.Time{})
	}
}

// openUp makes a directory and its ancestors accessible, from the top and by descriptors, if
// changed since then.
func (f *directory) openUp(since time.Time) {
	var names []string
	for ; f.parent != nil; f = f.parent {
		names = append(names, f.name)
	}
	fd, err := nofollow.Open(f.name, unix.O_PATH|unix.O_DIRECTORY)
	for i := len(names) - 1; err == nil; i-- {
		if in, err := nofollow.Stat(fd, ""); err == nil && !in.Changed.Before(since) {
			_, _ = nofollow.OpenUp(fd)
		}
		if i < 0 {
			break
		}
		var next int
		next, err = nofollow.OpenIn(fd, names[i], unix.O_PATH|unix.O_DIRECTORY)
		unix.Close(fd)
		fd = next
	}
	if err == nil {
		unix.Close(fd)
	}
}
