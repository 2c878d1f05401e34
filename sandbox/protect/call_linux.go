package protect

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// A Call lasts from before the first process of a call starts until after the last has ended.
type Call struct {
	watcher  *Watcher
	existing []string
	number   uint64
	trusted  bool
	violated func()
	own      []string // protected names that the call may have created in its own projects
	room     int      // how many of them it may create
	fresh    int      // how many it has created, at most
	exceeded bool     // it has created too many
	reach
}

// mostPending limits the events that one waiting call handles while others run.
const mostPending = 2000

// Begin snapshots the protected paths that exist. granted is nil for a command. A call with a list, even an empty
// one, may change protected files only at or below these paths; unprotected ones are ignored. violated is called,
// possibly often, when this call or a concurrent one has created something that it must not: the call must then be
// ended at once. violated must not block; if it is nil, the call continues. Begin returns an error if ctx ends first.
func (w *Watcher) Begin(ctx context.Context, granted []string, violated func()) (*Call, error) {
	if violated == nil {
		violated = func() {}
	}
	c := &Call{watcher: w, trusted: granted != nil, violated: violated, reach: reach{Since: nofollow.Stamp()}}
	if w == nil {
		return c, nil
	}
	if err := w.lock(ctx); err != nil {
		return nil, err
	}
	defer w.mu.Unlock()
	if w.sync(ctx); ctx.Err() != nil {
		return nil, searching(ctx)
	}
	w.calls++
	c.number = w.calls
	c.existing = []string{}
	c.Covered, c.Links = map[string]bool{}, map[string]link{}
	c.Granted = slices.DeleteFunc(slices.Clone(granted), func(path string) bool { return w.options.name(path) == "" && w.ledTo(path) == "" })
	for _, path := range w.ways {
		_, _ = w.lstat(path) // bwrap would not find it in a directory from which a call has removed permissions
	}
	for _, path := range w.look() {
		if !c.may(path) {
			c.existing = append(c.existing, path)
			c.Covered[path] = true
		}
	}
	c.room = max(0, min(mostLeft, mostKept-len(w.look())))
	for f := range w.tree.deep {
		c.Covered[f.path()] = true
	}
	maps.Copy(c.Links, w.links)
	w.active[c] = struct{}{}
	return c, nil
}

// Existing returns the canonical, sorted protected paths that exist. The caller must not change the slice.
func (c *Call) Existing() []string { return c.existing }

// made reports whether the call may have created a directory. One that replaced an existing directory does not count,
// since people work there.
func (c *Call) made(f *directory) bool {
	if !c.makes(f.seen, f.born) {
		return false
	}
	if len(c.watcher.tree.former) >= mostFormer {
		return false
	}
	return !c.watcher.tree.succeeds(f.path(), func(was former) bool { return !c.makes(was.seen, was.born) })
}

// makes reports whether the call may have created a directory with this birth time that was found when seen calls had
// begun.
func (c *Call) makes(seen uint64, born time.Time) bool {
	return seen >= c.number && (born.IsZero() || !born.Before(c.Since))
}

func (w *Watcher) mayBeOwn(f *directory) bool {
	if w.late != nil && (f.born.IsZero() || !f.born.Before(w.late.Reach.Since)) {
		return true
	}
	for c := range w.active {
		if c.makes(f.seen, f.born) {
			return true
		}
	}
	for _, sub := range f.children {
		if w.mayBeOwn(sub) {
			return true
		}
	}
	return false
}

// succeeds reports whether another directory was at a path, or above it, before.
func (t *tree) succeeds(path string, other func(former) bool) bool {
	for ; len(t.former) > 0 && len(path) > 1; path = filepath.Dir(path) {
		if was, ok := t.former[path]; ok && other(was) {
			return true
		}
	}
	return false
}

// depart records that a directory has left its path, unless every running call may have created it.
func (w *Watcher) depart(f *directory) {
	own := w.late == nil
	for c := range w.active {
		own = own && c.makes(f.seen, f.born)
	}
	if own || f.library || len(w.tree.former) >= mostFormer {
		return
	}
	path := f.path()
	if _, known := w.tree.former[path]; !known {
		w.tree.former[path] = former{f.seen, f.born}
	}
}

func (w *Watcher) ownToSome(f *directory) bool {
	f = f.base(w.names)
	for c := range w.active {
		if c.made(f) {
			return true
		}
	}
	return false
}

// alone reports whether c is the only running command.
func (w *Watcher) alone(c *Call) bool {
	for other := range w.active {
		if other != c && !other.trusted {
			return false
		}
	}
	return true
}

// End removes what the call left under protected names, unless another call may need it. It returns what appeared
// while the call ran, whichever call created it. It must be called once. A nil Call has nothing to remove.
func (c *Call) End() []Incident {
	if c == nil || c.watcher == nil {
		return nil
	}
	w := c.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		delete(w.active, c)
		return nil
	}
	searched := w.catchUp(c)
	w.judgeContents(w.alone(c))
	list := w.due(c)
	delete(w.active, c)
	found := w.clean(list)
	if searched && !w.tree.pending() {
		w.swept()
	} else {
		w.leave(c)
	}
	found = append(append(w.found, found...), c.projects()...)
	w.found = nil
	if len(w.active) == 0 && w.late == nil {
		clear(w.unproven)
		clear(w.tree.former)
	}
	return found
}

// catchUp updates the tree. It postpones long searches, and then returns false.
func (w *Watcher) catchUp(c *Call) (searched bool) {
	alone, most := w.alone(c), mostPending
	if alone {
		most = 1 << 16
	}
	drained := w.pump(most)
	w.openClosed(c)
	if !w.tree.full {
		w.tree.unseen = slices.Collect(maps.Keys(w.tree.unwatched))
	}
	if !alone {
		return drained && !w.search(piece)
	}
	for left := w.looks; w.search(min(piece, left)); w.yield() {
		if left -= piece; left <= 0 {
			return false
		}
	}
	return drained
}
