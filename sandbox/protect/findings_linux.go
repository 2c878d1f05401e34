package protect

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// finding is something that is to be removed when the calls that may have made it have
// ended, or when one of them has, if the call made the directory that it is in.
type finding struct {
	Incident
	folder *folder
	name   string
	by     map[*Call]bool // may have made it, and have not ended
	wait   bool           // for all of them
	late   bool           // or by a call that ended before
}

// mostFindings is how many there may be. A call that makes more is ended.
const mostFindings = 1000

// suspects are the calls that may have made what is at a path. own tells that one of them
// may have made the directory that counts, too; late, that a call may have made it that
// has ended.
func (w *Watcher) suspects(f *folder, path string) (by map[*Call]bool, own, late bool) {
	base := f.base(w.names)
	for c := range w.active {
		switch {
		case c.may(path):
			w.cover(path)
			return nil, false, false
		case !c.trusted && c.could(path, w.behind || f.unread):
			if by == nil {
				by = map[*Call]bool{}
			}
			by[c] = true
			own = own || c.made(base)
		}
	}
	if w.late.blames(path) {
		if by == nil {
			by = map[*Call]bool{}
		}
		late = true
		own = own || w.late.made(base.path())
	}
	return by, own, late
}

// cover notes that what is at a path now was allowed.
func (w *Watcher) cover(path string) {
	for c := range w.active {
		c.Covered[path] = true
	}
}

// uncover notes that a path has been replaced, from outside where it was covered: the
// kernel takes a mount away with what it covers. Calls can change it now.
func (w *Watcher) uncover(path string) {
	for c := range w.active {
		delete(c.Covered, path)
	}
}

// accuse notes that something appeared that calls may not make. strict tells that it is
// not allowed in their own projects either.
func (w *Watcher) accuse(f *folder, name, why string, strict bool) {
	if len(w.active) == 0 && w.late == nil {
		return
	}
	path := f.path() + "/" + name
	by, own, late := w.suspects(f, path)
	if by == nil {
		return
	}
	if own && !strict {
		for c := range by {
			c.note(path)
		}
		return
	}
	w.find(&finding{Incident: Incident{Path: path, Why: why}, folder: f, name: name, by: by, wait: !own, late: late})
	if !own && !w.options.Report {
		for c := range by {
			c.violate()
		}
	}
}

// find adds a finding.
func (w *Watcher) find(n *finding) {
	w.existing = nil
	if old := w.findings[n.Path]; old != nil {
		maps.Copy(old.by, n.by)
		old.folder, old.name = n.folder, n.name
		return
	}
	if len(w.findings) < mostFindings {
		w.findings[n.Path] = n
		return
	}
	w.more = !w.options.Report
	for c := range n.by {
		c.violate()
	}
}

// mostOwn is how many names in projects of a call are told.
const mostOwn = 16

// note notes a protected name in a project that the call made.
func (c *Call) note(path string) {
	if len(c.own) < mostOwn && !slices.Contains(c.own, path) {
		c.own = append(c.own, path)
	}
}

// projects are the protected names that stay in projects which the call made.
func (c *Call) projects() (list []Incident) {
	for _, path := range c.own {
		if _, ok := modeOf(path); ok {
			list = append(list, Incident{Path: path, Why: obeyed, Own: true})
		}
	}
	return list
}

// judgeContents judges by content what has come since calls run. last tells that no other
// command runs, so that nothing is half written.
func (w *Watcher) judgeContents(last bool) {
	for f := range w.tree.holders {
		if f.kind == rebase && !f.lost {
			w.opened(f)
			w.judgeTodo(f, last)
		}
	}
	for path, p := range w.unproven {
		if p.folder.kind == forgotten || p.folder.lost {
			delete(w.unproven, path)
			continue
		}
		w.opened(p.folder)
		why := w.content(p.folder, p.name, last)
		if why == "" {
			continue
		}
		delete(w.unproven, path)
		path := p.folder.path() + "/" + p.name
		if by, _, late := w.suspects(p.folder, path); by != nil {
			w.find(&finding{Incident: Incident{Path: path, Why: why}, folder: p.folder, name: p.name, by: by, late: late})
		}
	}
}

// judgeTodo judges what a rebase has still to do. Until the calls that may be at it have
// ended it may list anything.
func (w *Watcher) judgeTodo(f *folder, last bool) {
	path := f.path() + "/" + todo
	if w.findings[path] != nil {
		return
	}
	if why := w.content(f, todo, last); why != "" {
		if by, _, late := w.suspects(f, path); by != nil {
			w.find(&finding{Incident: Incident{Path: path, Why: why}, folder: f, name: todo, by: by, wait: true, late: late})
		}
	}
}

// due takes the findings of a call that has ended. Those that wait for other calls are
// left, but told. A nil call stands for those that ended before.
func (w *Watcher) due(c *Call) (list []*finding) {
	for path, n := range w.findings {
		if c != nil && !n.by[c] || c == nil && !n.late {
			continue
		}
		delete(n.by, c)
		n.Later = n.wait && len(n.by) > 0
		list = append(list, n)
		if !n.Later {
			delete(w.findings, path)
		}
	}
	slices.SortFunc(list, func(a, b *finding) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// mostTold is how many incidents one return tells.
const mostTold = 200

// clean removes what is due and returns what became of it. It gives the lock away
// meanwhile.
func (w *Watcher) clean(due []*finding) (list []Incident) {
	left, removed := allow(), false
	for _, n := range due {
		if !n.Later && !w.remove(n, left) {
			continue
		}
		removed = removed || n.Err == nil && !n.Later
		if len(list) < mostTold {
			list = append(list, n.Incident)
		}
	}
	if len(due) > 0 {
		w.existing = nil
	}
	if w.more && removed { // they are found again now that the others are gone
		w.more, w.tree.unseen, w.tree.full = false, slices.Clone(w.tree.roots), true
	}
	return list
}

// remove removes what was found. It reports whether that is worth telling.
func (w *Watcher) remove(n *finding, left *allowance) bool {
	w.opened(n.folder)
	if n.name == todo && w.content(n.folder, todo, true) == "" {
		return false // the rebase has ended
	}
	if w.options.Report {
		return true
	}
	dir, err := w.openDirectory(n.folder)
	if err == nil {
		w.mu.Unlock()
		n.Kept, err = takeAway(dir, n.name, n.Path, w.options.Quarantine, left)
		unix.Close(dir)
		w.mu.Lock()
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		n.Gone = true
		return n.wait
	}
	n.Err = err
	return true
}

// openDirectory opens the directory of a folder, if it is where it was seen last.
func (w *Watcher) openDirectory(f *folder) (int, error) {
	if f.lost || f.kind == forgotten {
		return -1, unix.ENOENT
	}
	fd, err := openPath(f.path(), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	if in, err := statAt(fd, ""); err != nil || in.id != f.id {
		unix.Close(fd)
		return -1, unix.ENOENT
	}
	return fd, nil
}
