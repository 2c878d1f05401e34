package protect

import (
	"context"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// Sync handles all pending events, whose number the kernel bounds, once the roots have been
// read. It fails if ctx ends before it can begin.
func (w *Watcher) Sync(ctx context.Context) error {
	if w == nil {
		return nil
	}
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.mu.Unlock()
	for end, left := w.taken+w.waiting(), w.looks; w.taken < end || len(w.tree.todo) > 0 && left > 0; w.yield() {
		left -= min(left, len(w.tree.todo))
		if w.closed || w.pump(1) {
			break
		}
	}
	w.settleTree()
	w.searchLost()
	return nil
}

func (w *Watcher) waiting() uint64 {
	if w.closed {
		return 0
	}
	n, err := unix.IoctlGetInt(w.fd, unix.TIOCINQ) // FIONREAD
	if err != nil {
		return 0
	}
	return uint64(n)
}

// sync handles pending events, until ctx ends, but not so many that others wait long.
func (w *Watcher) sync(ctx context.Context) {
	most := 1 << 16
	if len(w.active) > 0 {
		most = mostPending
	}
	drained := false
	for ; !drained && most > 0 && ctx.Err() == nil; most -= piece {
		drained = w.pump(piece)
	}
	w.behind = w.behind || !drained
	for _, f := range w.tree.todo {
		f.unread = true // a call begins
	}
	w.searchLost()
}

// searchLost scans again for the Sight after the queue has overflowed, and handles new events
// meanwhile: otherwise the queue would overflow again.
func (w *Watcher) searchLost() {
	if w.options.Sight == nil {
		return
	}
	for left := w.looks; w.tree.full && left > 0 && w.search(piece); left -= piece {
		w.pump(1 << 14)
	}
}

// List passes every directory to the Sight again.
func (w *Watcher) List() {
	if w == nil || w.options.Sight == nil {
		return
	}
	<-w.ready
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pump(1 << 16)
	for _, root := range w.tree.roots {
		w.relist(root, false)
	}
}

func (w *Watcher) list(f *directory, entries []fs.DirEntry, moved bool) {
	if w.options.Sight != nil && w.options.Sight.Listed(f.path(), entries, moved) {
		f.see()
	}
}

func (f *directory) see() {
	for ; f != nil && !f.sighted; f = f.parent {
		f.sighted = true
	}
}

func (w *Watcher) relist(f *directory, moved bool) {
	for next := []*directory{f}; len(next) > 0 && w.options.Sight != nil; next = next[1:] {
		dir := next[0].path()
		fd, err := nofollow.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
		if err == unix.EACCES && !next[0].unread { // a call has closed it
			next[0].openUp(time.Time{})
			fd, err = nofollow.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
		}
		if err != nil {
			continue // never read, or gone
		}
		open := os.NewFile(uintptr(fd), dir)
		entries, _ := open.ReadDir(-1) // a partial list counts
		open.Close()
		w.list(next[0], entries, moved)
		for _, sub := range next[0].children {
			next = append(next, sub)
		}
	}
}

func (w *Watcher) changed(f *directory, name string, dir bool) {
	if w.options.Sight == nil {
		return
	}
	path := f.path() + "/" + name
	if !w.options.Sight.Wants(path, dir) {
		return
	}
	f.see()
	if _, err := w.at(f); err != nil {
		w.tree.retry(f) // it is elsewhere by now
		return
	}
	w.options.Sight.Changed(path)
}

// sees reports whether a rename of a directory may matter to the Sight.
func (w *Watcher) sees(f *directory, from, to string) bool {
	s := w.options.Sight
	if s == nil {
		return false
	}
	return f.sighted || s.Wants(from, false) || s.Wants(to, false)
}

func (w *Watcher) moved(f *directory, from string) {
	if w.options.Sight == nil {
		return
	}
	if f.sighted {
		f.sighted = false
		f.see()
	}
	if w.options.Sight.Moved(from, f.path()) || f.sighted {
		w.relist(f, true)
	}
}
