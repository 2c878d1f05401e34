package protect

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// lateCalls describes calls that ended before every directory was searched. What they left is found by this Watcher or
// by the next one of these roots, which loads it from JSON. nil means none.
type lateCalls struct {
	Until time.Time // when the last of them ended: they did not create later files
	Reach reach     // joined since the first of them began

	Exceeded bool // one has created too many protected names
}

func (u *lateCalls) blames(path string) bool {
	if u == nil || u.Reach.may(path) || !u.Reach.could(path, false) {
		return false
	}
	changed, _, ok := timesOf(path)
	return ok && !changed.After(u.Until)
}

func (u *lateCalls) made(path string) bool {
	if u == nil {
		return false
	}
	_, born, ok := timesOf(path)
	return ok && !born.Before(u.Reach.Since) && !born.After(u.Until)
}

// timesOf returns the ctime of a file, which no program can set, and its birth time, or the ctime again if the file
// system records no birth time.
func timesOf(path string) (changed, born time.Time, ok bool) {
	in, err := nofollow.Lstat(path)
	if in.Born.IsZero() {
		in.Born = in.Changed
	}
	return in.Changed, in.Born, err == nil
}

func (w *Watcher) leave(c *Call) {
	u := &lateCalls{Until: time.Now(), Reach: c.reach, Exceeded: c.exceeded}
	if old := w.late; old != nil {
		u.Reach, u.Exceeded = old.Reach.join(c.reach), u.Exceeded || old.Exceeded
	}
	w.late = u
	w.options.Note("unseen").Store(u)
	if !w.sweeping && !w.closed {
		w.sweeping = true
		// Ends when nothing is left to search, or with Close.
		w.work.Go(w.sweep)
	}
}

// piece is how many directories are read before the lock is released.
const piece = 500

func (w *Watcher) sweep() {
	w.mu.Lock()
	for again := true; again; again = !w.closed && w.tree.pending() {
		for !w.closed && w.search(piece) {
			w.yield()
		}
		w.pump(1 << 16)
		w.settleTree()
		w.swept()
	}
	w.sweeping = false
	w.mu.Unlock()
	w.notify()
}

func (w *Watcher) yield() {
	w.mu.Unlock()
	runtime.Gosched()
	w.mu.Lock()
}

// search reads at most most pending directories, and reports whether some remain.
func (w *Watcher) search(most int) (more bool) {
	t := &w.tree
	t.left = most
	w.scan(nil)
	for ; len(t.unseen) > 0 && t.left > 0; t.left-- {
		f := t.unseen[0]
		found := w.read(f)
		t.unseen = append(t.unseen[1:], found...)
		if t.full && f.kind != forgotten && !f.lost {
			t.unseen = slices.AppendSeq(t.unseen, maps.Values(f.children))
		}
	}
	w.here.close()
	if len(t.unseen) == 0 {
		w.settleTree()
	}
	if t.pending() {
		return true
	}
	t.unseen, t.full, t.short = nil, false, t.short && len(t.unwatched) > 0
	return false
}

func (w *Watcher) swept() {
	if w.tree.pending() {
		return
	}
	if w.late != nil {
		w.judgeContents(w.alone(nil))
		w.found = append(w.found, w.clean(w.due(nil))...)
		if w.tree.pending() {
			return
		}
		w.late = nil
		w.options.Note("unseen").Remove()
	}
}

func (o Options) remembered() *lateCalls {
	var u lateCalls
	if !o.Note("unseen").Load(&u) || u.Until.IsZero() {
		return nil
	}
	return &u
}
