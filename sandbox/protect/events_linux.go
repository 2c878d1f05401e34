package protect

import (
	"bytes"
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// event is what happened under a name of a watched directory.
type event struct {
	wd   int32
	name string
	mask uint32 // of all that happened there
}

// pump handles events until there are none, or most have been handled. It reports
// whether none is left.
func (w *Watcher) pump(most int) (drained bool) {
	for !w.closed {
		list := w.take()
		if len(list) == 0 {
			w.settleTree()
			w.behind = false
			return true
		}
		for _, e := range list {
			w.handle(e)
		}
		w.here.close()
		if most -= len(list); most <= 0 {
			return false
		}
	}
	return true
}

// block is how much of the queue is read at once, and so how long the lock is held.
const block = 8 << 10

// take reads a block of events. What happened to a name again and again is one event:
// what counts is what is there now.
func (w *Watcher) take() []event {
	var buf [block]byte
	for {
		n, err := unix.Read(w.fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return nil
		}
		w.taken += uint64(n)
		return merge(buf[:n])
	}
}

// merge reads structures of inotify(7).
func merge(b []byte) (list []event) {
	known := map[event]int{} // without a mask
	for len(b) >= unix.SizeofInotifyEvent {
		e := event{wd: int32(binary.NativeEndian.Uint32(b))}
		mask := binary.NativeEndian.Uint32(b[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		if end > len(b) {
			break
		}
		e.name = string(bytes.TrimRight(b[unix.SizeofInotifyEvent:end], "\x00"))
		b = b[end:]
		if i, again := known[e]; again {
			list[i].mask |= mask
			continue
		}
		known[e] = len(list)
		e.mask = mask
		list = append(list, e)
	}
	return list
}

func (w *Watcher) handle(e event) {
	switch f := w.tree.watch[e.wd]; {
	case e.mask&unix.IN_Q_OVERFLOW != 0:
		w.tree.unseen, w.tree.full = slices.Clone(w.tree.roots), true
	case f == nil: // of a watch that was given up
	case e.mask&unix.IN_IGNORED != 0:
		f.wd = -1 // the kernel has removed it with the directory
		delete(w.tree.watch, e.wd)
		if f.born.IsZero() && f.parent != nil {
			w.tree.again[f.parent] = struct{}{} // it may be another that has its number
		}
		w.depart(f)
		w.drop(f)
	case e.name != "":
		w.visit(f, e.name, e.mask)
	}
}

// here is the directory of the latest event, which most likely is that of the next.
type here struct {
	directory *directory
	fd        int
}

func (h *here) close() {
	if h.directory != nil {
		unix.Close(h.fd)
		h.directory = nil
	}
}

// at is a directory's directory, open, until the events that were read have been handled.
func (w *Watcher) at(f *directory) (int, error) {
	if w.here.directory == f {
		return w.here.fd, nil
	}
	fd, err := w.openDirectory(f)
	if err != nil {
		return -1, err
	}
	w.here.close()
	w.here = here{f, fd}
	return fd, nil
}

// visit looks at what is under a name now. What was there when the event was made does
// not matter any more.
func (w *Watcher) visit(f *directory, name string, mask uint32) {
	if mask&replaced != 0 {
		w.changed(f, name, mask&unix.IN_ISDIR != 0 || f.children[name] != nil)
	}
	old := f.children[name]
	noted := len(w.links) > 0 && w.isNoted(f, name)
	if mask&unix.IN_ISDIR == 0 && old == nil && !noted && !w.matters(f, name) {
		return
	}
	var in nofollow.Info
	dir, err := w.at(f)
	if err == nil {
		in, err = nofollow.Stat(dir, name)
	}
	switch err {
	case nil:
		w.arrived(f, name, in, noted)
	case unix.EACCES:
		w.tree.closed[f], f.unread = struct{}{}, true
	default:
		if dir < 0 {
			w.tree.again[f] = struct{}{}
			if old != nil { // it may be another by now
				w.tree.again[old] = struct{}{}
			}
		} else {
			w.vanished(f, name)
		}
	}
	if mask&replaced != 0 && len(w.active) > 0 {
		w.uncover(f.path() + "/" + name)
	}
}

// arrived judges what is under a name.
func (w *Watcher) arrived(f *directory, name string, in nofollow.Info, noted bool) {
	if noted {
		w.existing = nil
	}
	w.judge(f, name, in.Mode)
	w.place(f, name, in)
	if f.kind == plain && !f.bare && bareName(name) && isBare(func(name string) bool { _, ok := modeOf(f.path() + "/" + name); return ok }) {
		w.becomeBare(f)
		w.scan(w.read(f))
	}
}

// place brings the directory of a name up to date.
func (w *Watcher) place(f *directory, name string, in nofollow.Info) {
	old := f.children[name]
	switch {
	case !in.Mode.IsDir():
		if old != nil {
			w.lose(old)
		}
	case old == nil:
		w.scan(w.enter(f, name, in))
	case old.id != (nofollow.ID{}) && !old.is(in):
		w.lose(old)
		w.scan(w.enter(f, name, in))
	}
}

// enter returns what is to be read because a directory has come under a name.
func (w *Watcher) enter(f *directory, name string, in nofollow.Info) []*directory {
	if was := w.tree.byID[in.ID]; was != nil && w.hasMoved(was, f, in) {
		return w.attach(was, f, name)
	}
	return []*directory{w.add(f, name)}
}

// hasMoved reports whether the directory in, which was found in parent, is the known f,
// and f is not where it was seen last.
func (w *Watcher) hasMoved(f, parent *directory, in nofollow.Info) bool {
	if f.root || !f.born.Equal(in.Born) || parent.below(f) {
		return false
	}
	fd, err := w.openDirectory(f)
	if err == nil {
		unix.Close(fd)
	}
	return err != nil
}

// vanished notes that nothing is under a name.
func (w *Watcher) vanished(f *directory, name string) {
	if old := f.children[name]; old != nil {
		w.lose(old)
	}
	if w.leads(f.path() + "/" + name) {
		w.existing = nil
	}
	w.release(f, name)
	if name == ".git" {
		f.gitFile = false
	}
}

// matters reports whether something other than a directory may matter under a name.
func (w *Watcher) matters(f *directory, name string) bool {
	return f.kind != plain || f.bare || name == ".git" || bareName(name) || w.counts(f, name) || w.names.nested[name] != nil
}

// settleTree ends what had to wait for the last event.
func (w *Watcher) settleTree() {
	for rounds := 0; len(w.tree.again) > 0 && rounds < 3; rounds++ {
		again := w.tree.again
		w.tree.again = map[*directory]struct{}{}
		for f := range again {
			w.scan(w.read(f))
		}
	}
	for f := range w.tree.lost {
		w.drop(f)
	}
}
