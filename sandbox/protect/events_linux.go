package protect

import (
	"bytes"
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

type event struct {
	wd   int32
	name string
	to   string // new name of a directory renamed within its parent, or ""
	mask uint32 // union of the event masks

	mixed bool // merged from events for several names
}

// pump reads new directories and handles about most events. It reports whether none is left. The caller holds mu,
// which pump releases after each piece.
func (w *Watcher) pump(most int) (drained bool) {
	t := &w.tree
	for ; !w.closed; w.yield() {
		most -= min(len(t.todo), piece)
		t.left = piece
		w.scan(nil)
		list := w.take()
		for _, e := range list {
			w.handle(e)
		}
		w.here.close()
		if len(list) == 0 {
			t.drains++
			w.settleTree()
		}
		if len(list) == 0 && len(t.todo) == 0 {
			w.behind = false
			return true
		}
		if most -= len(list); most <= 0 {
			return false
		}
	}
	return true
}

// block is how many bytes of the queue are read at once, which limits how long the lock is held.
const block = 8 << 10

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

func merge(b []byte) (list []event) {
	type name struct {
		wd   int32
		name string
	}
	known := map[name]int{}
	for len(b) > 0 {
		e, cookie, size := decode(b)
		if size == 0 {
			break
		}
		b = b[size:]
		if i, again := known[name{e.wd, e.name}]; again {
			list[i].mask |= e.mask
			list[i].mixed = true
			continue
		}
		known[name{e.wd, e.name}] = len(list)
		if next, same, more := decode(b); more > 0 && cookie == same && e.isRename(next) {
			if _, came := known[name{e.wd, next.name}]; !came {
				known[name{e.wd, next.name}] = len(list)
				e.to, e.mask, b = next.name, e.mask|next.mask, b[more:]
			}
		}
		list = append(list, e)
	}
	return list
}

func decode(b []byte) (e event, cookie uint32, size int) {
	if len(b) < unix.SizeofInotifyEvent {
		return e, 0, 0
	}
	size = unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
	if size > len(b) {
		return e, 0, 0
	}
	e = event{wd: int32(binary.NativeEndian.Uint32(b)), mask: binary.NativeEndian.Uint32(b[4:])}
	e.name = string(bytes.TrimRight(b[unix.SizeofInotifyEvent:size], "\x00"))
	return e, binary.NativeEndian.Uint32(b[8:]), size
}

func (e event) isRename(next event) bool {
	return e.wd == next.wd && e.mask == unix.IN_MOVED_FROM|unix.IN_ISDIR && next.mask == unix.IN_MOVED_TO|unix.IN_ISDIR
}

func (w *Watcher) handle(e event) {
	switch f := w.tree.watch[e.wd]; {
	case e.mask&unix.IN_Q_OVERFLOW != 0:
		w.tree.unseen, w.tree.full = slices.Clone(w.tree.roots), true
		w.tree.drains++
		w.tree.gap = w.tree.drains
	case f == nil: // of a removed watch
	case e.mask&unix.IN_IGNORED != 0:
		f.wd = -1 // the kernel removed the watch with the directory
		delete(w.tree.watch, e.wd)
		if f.born.IsZero() {
			w.tree.retry(f.parent) // the watch descriptor may be reused
		}
		w.depart(f)
		w.drop(f)
	case w.tree.full && w.canWait(f, e):
	case e.to != "" && !e.mixed && w.renamed(f, e):
	case e.to != "":
		w.visit(f, e.name, e.mask)
		w.visit(f, e.to, e.mask)
	case e.name != "":
		w.visit(f, e.name, e.mask)
	}
}

// canWait reports whether an event of a flood can be dropped: its directory must be read anyway, and its name ends no
// call. If all were handled, the queue would overflow again.
func (w *Watcher) canWait(f *directory, e event) bool {
	if f.read >= w.tree.gap || e.mask&unix.IN_ISDIR == 0 {
		return false
	}
	return w.ordinary(f, e.name) && (e.to == "" || w.ordinary(f, e.to))
}

// renamed applies the rename of a project directory, and reports whether it could. It does not check both names,
// which would be most of the cost of many renames: if the known state of the directory is the one before the event,
// the event suffices. Otherwise it checks the new name.
func (w *Watcher) renamed(f *directory, e event) bool {
	d := f.children[e.name]
	if d == nil || !d.isKnown() || f.children[e.to] != nil {
		return false
	}
	if !w.ordinary(f, e.name) || !w.ordinary(f, e.to) {
		return false
	}
	dir := f.path()
	from, to := dir+"/"+e.name, dir+"/"+e.to
	if w.mayMatter(d, from, to) || !w.keeps(d, f, e.to, to) {
		return false
	}
	if !w.tree.exact(f) {
		if in, err := nofollow.Lstat(to); err != nil || !d.is(in) {
			return false
		}
	}
	w.lose(d)
	w.hang(d, f, e.to)
	w.uncover(from)
	w.uncover(to)
	return true
}

func (w *Watcher) ordinary(f *directory, name string) bool {
	return f.kind == plain && !w.matters(f, name) && !w.isNoted(f, name)
}

// here caches the directory of the latest event, since the next event is probably for the same one.
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

// at returns a descriptor of a directory. It remains open until the events read so far are handled.
func (w *Watcher) at(f *directory) (int, error) {
	if w.here.directory == f {
		return w.here.fd, nil
	}
	parent := w.here
	fd, err := w.openBy(f, func() (int, error) {
		if f.parent != nil && f.parent == parent.directory {
			return nofollow.OpenAt(parent.fd, f.name, unix.O_PATH|unix.O_DIRECTORY)
		}
		return nofollow.Open(f.path(), unix.O_PATH|unix.O_DIRECTORY)
	})
	if err != nil {
		return -1, err
	}
	w.here.close()
	w.here = here{f, fd}
	return fd, nil
}

func (w *Watcher) visit(f *directory, name string, mask uint32) {
	old := f.children[name]
	isDir := mask&unix.IN_ISDIR != 0 || old != nil
	if mask&replaced != 0 {
		w.changed(f, name, isDir)
	}
	noted := w.isNoted(f, name)
	if !isDir && !noted && !w.matters(f, name) {
		return
	}
	w.tree.look(f)
	var in nofollow.Info
	dir, err := w.at(f)
	if err == nil {
		in, err = nofollow.Stat(dir, name)
	}
	switch {
	case err == nil:
		w.arrived(f, name, in, noted)
		if mask&unix.IN_MOVED_TO != 0 && old != nil && old == f.children[name] {
			w.returned(old)
		}
	case err == unix.EACCES:
		w.tree.closed[f], f.unread = struct{}{}, true
	case dir >= 0:
		w.vanished(f, name)
	default:
		w.tree.retry(f)
		w.tree.retry(old)
	}
	if mask&replaced != 0 && len(w.active) > 0 {
		w.uncover(f.path() + "/" + name)
	}
}

func (w *Watcher) returned(f *directory) {
	if f.wd < 0 {
		w.tree.retry(f)
	}
	if f.matters {
		w.listLater(f)
	}
}

func (w *Watcher) arrived(f *directory, name string, in nofollow.Info, noted bool) {
	if noted {
		w.existing = nil
	}
	w.judge(f, name, in.Mode)
	w.place(f, name, in)
	has := func(name string) bool { _, ok := modeOf(f.path() + "/" + name); return ok }
	mayBeBare := f.kind == plain && !f.bare && bareName(name)
	if mayBeBare && isBare(has) {
		w.becomeBare(f)
		w.scan(w.read(f))
	}
}

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

// enter returns the directories to read because a directory appeared under a name.
func (w *Watcher) enter(f *directory, name string, in nofollow.Info) []*directory {
	if was := w.tree.byID[in.ID]; was != nil && w.hasMoved(was, f, in) {
		return w.attach(was, f, name)
	}
	return []*directory{w.add(f, name)}
}

func (w *Watcher) hasMoved(f, parent *directory, in nofollow.Info) bool {
	if f.root || !f.born.Equal(in.Born) || parent.below(f) {
		return false
	}
	return !w.isThere(f)
}

// isThere reports whether a directory is still in its known parent, and so are the directories above it. Its path may
// lead to it although it is not, for example after two parents were exchanged.
func (w *Watcher) isThere(f *directory) bool {
	fd, err := w.openStepwise(f)
	if err == nil {
		unix.Close(fd)
	}
	return err == nil
}

func (w *Watcher) openStepwise(f *directory) (int, error) {
	if f.parent == nil {
		return w.openDirectory(f)
	}
	parent, err := w.openStepwise(f.parent)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	return w.openBy(f, func() (int, error) { return nofollow.OpenAt(parent, f.name, unix.O_PATH|unix.O_DIRECTORY) })
}

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

func (w *Watcher) matters(f *directory, name string) bool {
	if f.kind != plain || f.bare || name == ".git" {
		return true
	}
	return bareName(name) || w.counts(f, name) || w.names.nested[name] != nil
}

func (w *Watcher) settleTree() {
	for rounds := 0; len(w.tree.again) > 0 && rounds < 3; rounds++ {
		again := w.tree.again
		w.tree.again = map[*directory]struct{}{}
		for f := range again {
			w.scan(w.read(f))
		}
	}
	if w.tree.full && len(w.tree.unseen) > 0 || len(w.tree.todo) > 0 {
		return // it may be in a directory that is not yet read
	}
	for f := range w.tree.lost {
		w.drop(f)
	}
}
