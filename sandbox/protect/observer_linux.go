package protect

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// Sync handles all pending events, whose number the kernel limits, once the roots have been read. It returns an error
// if ctx ends before it can begin.
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
	w.listMoved()
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

// sync handles pending events until ctx ends, but not so many that others wait long.
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

// searchLost scans again for the Observer after the queue has overflowed. It also handles new events, so that the queue
// does not overflow again.
func (w *Watcher) searchLost() {
	if w.options.Observer == nil {
		return
	}
	for left := w.looks; w.tree.full && left > 0 && w.search(piece); left -= piece {
		w.pump(1 << 14)
	}
}

// List passes every directory to the Observer again.
func (w *Watcher) List() {
	if w == nil || w.options.Observer == nil {
		return
	}
	<-w.ready
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pump(1 << 16)
	for next := slices.Clone(w.tree.roots); len(next) > 0; w.yield() {
		for left := piece; left > 0 && len(next) > 0; {
			f := next[0]
			left -= w.relist(f, false)
			next = slices.AppendSeq(next[1:], maps.Values(f.children))
		}
	}
}

func (w *Watcher) list(f *directory, entries []fs.DirEntry, moved bool) {
	if w.options.Observer != nil && w.options.Observer.Listed(f.path(), entries, moved) {
		f.setMatters()
	}
}

func (f *directory) setMatters() {
	for ; f != nil && !f.matters; f = f.parent {
		f.matters = true
	}
}

// relist passes a directory to the Observer again. cost is the equivalent number of read directories.
func (w *Watcher) relist(f *directory, moved bool) (cost int) {
	dir := f.path()
	fd, err := nofollow.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == unix.EACCES && !f.unread { // a call has removed its permissions
		f.openUp(time.Time{})
		fd, err = nofollow.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	}
	if err != nil {
		return 1 // never read, or removed
	}
	open := os.NewFile(uintptr(fd), dir)
	entries, _ := open.ReadDir(-1) // a partial list suffices
	open.Close()
	w.list(f, entries, moved)
	return 1 + len(entries)/16
}

// movedOne is a directory to pass to the Observer again, with everything below it, since it was moved.
type movedOne struct {
	*directory
	pass uint64
}

// listLater schedules a directory for listMoved, so that one that moves again and again is read once.
func (w *Watcher) listLater(f *directory) {
	if t := &w.tree; f.pass == 0 {
		f.pass = t.pass
		t.moved = append(t.moved, movedOne{f, t.pass})
	}
}

// listMoved passes to the Observer what was moved so far. It releases mu after each piece. What moves meanwhile is left
// to the next pass.
func (w *Watcher) listMoved() {
	t := &w.tree
	pass := t.pass
	t.pass++
	due := func() bool { return len(t.moved) > 0 && t.moved[0].pass <= pass }
	for ; due() && !w.closed; w.yield() {
		for left := piece; left > 0 && due(); {
			left -= w.listNext()
		}
	}
}

// listNext lists the first of the moved directories, and inserts its subdirectories before the others, which belong
// to later passes.
func (w *Watcher) listNext() (cost int) {
	t := &w.tree
	f := t.moved[0]
	t.moved = t.moved[1:]
	if f.directory.pass != f.pass || f.kind == forgotten { // it was listed with its parent
		return 1
	}
	f.directory.pass, f.listed = 0, f.pass
	cost = w.relist(f.directory, true)
	var below []movedOne
	for _, sub := range f.children {
		isQueued := sub.pass > 0 && sub.pass <= f.pass
		if sub.listed < f.pass && !isQueued {
			sub.pass = f.pass
			below = append(below, movedOne{sub, f.pass})
		}
	}
	if len(below) > 0 {
		t.moved = append(below, t.moved...)
	}
	return cost
}

func (w *Watcher) changed(f *directory, name string, dir bool) {
	if w.options.Observer == nil {
		return
	}
	path := f.path() + "/" + name
	if !w.options.Observer.Wants(path, dir) {
		return
	}
	f.setMatters()
	if _, err := w.at(f); err != nil {
		w.tree.retry(f) // it has moved again
		return
	}
	w.options.Observer.Changed(path)
}

// mayMatter reports whether a rename of a directory may matter to the Observer.
func (w *Watcher) mayMatter(f *directory, from, to string) bool {
	s := w.options.Observer
	if s == nil {
		return false
	}
	return f.matters || s.Wants(from, false) || s.Wants(to, false)
}

func (w *Watcher) moved(f *directory, from string) {
	if w.options.Observer == nil {
		return
	}
	if f.matters {
		f.matters = false
		f.setMatters()
	}
	if w.options.Observer.Moved(from, f.path()) || f.matters {
		w.listLater(f)
	}
}
