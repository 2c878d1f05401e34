package protect

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
	"github.com/toold/toold/sandbox/quarantine"
)

// finding is something to remove when one, or all, of the calls that may have created it have ended.
type finding struct {
	Incident
	entry
	by    map[*Call]bool // running calls that may have created it
	wait  bool           // for all of them
	late  bool           // a call that ended before may also have created it
	stays bool           // it is not removed
}

// mostFindings limits the findings. A call that causes more is ended.
const mostFindings = 1000

// suspects returns the running calls that may have created what is at a path. own means that one may also have
// created its base directory; late means that an ended call may have.
func (w *Watcher) suspects(f *directory, path string) (by map[*Call]bool, own, late bool) {
	base := f.base(w.names)
	for c := range w.active {
		switch {
		case c.may(path):
			for other := range w.active { // it may create what is there now
				other.Covered[path] = true
			}
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
		succeeds := w.tree.succeeds(base.path(), func(former) bool { return true })
		own = own || w.late.made(base.path()) && !succeeds
	}
	return by, own, late
}

const deeper = "it is below 256 other directories, and toold looks no deeper for protected names"

// tooDeep records a directory that is not read, and ends the calls that created it or moved it there.
func (w *Watcher) tooDeep(f *directory) {
	if _, known := w.tree.deep[f]; known {
		return
	}
	w.tree.deep[f] = struct{}{}
	path := f.path()
	by, _, late := w.suspects(f.parent, path)
	if by == nil {
		return
	}
	in, err := nofollow.Lstat(path)
	made, isKnown := late && w.late.made(path), err == nil && !in.Born.IsZero()
	for c := range by {
		made = made || isKnown && c.makes(f.seen, in.Born)
	}
	w.find(&finding{Incident: Incident{Path: path, Why: deeper, Instead: instead(deeper)}, entry: entry{f.parent, f.name}, by: by, wait: true, late: late, stays: !made})
	w.end(by)
}

func (w *Watcher) end(by map[*Call]bool) {
	if w.options.Report {
		return
	}
	for c := range by {
		c.violated()
	}
}

// uncover records that a covered path was replaced, with which its mount is lost.
func (w *Watcher) uncover(path string) {
	for c := range w.active {
		delete(c.Covered, path)
	}
}

// accuse records something that calls must not create; with strict, not even in their own projects.
func (w *Watcher) accuse(f *directory, name, why string, strict bool) {
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
	w.find(&finding{Incident: Incident{Path: path, Why: why, Instead: instead(why)}, entry: entry{f, name}, by: by, wait: !own, late: late})
	if !own {
		w.end(by)
	}
}

func (w *Watcher) find(n *finding) {
	w.existing = nil
	if old := w.findings[n.entry]; old != nil {
		maps.Copy(old.by, n.by)
		return
	}
	if len(w.findings) < mostFindings || n.Why == tooMany { // these are not found again
		w.findings[n.entry] = n
		return
	}
	w.more = !w.options.Report
	for c := range n.by {
		c.violated()
	}
}

const mostOwn = 16

func (c *Call) note(path string) {
	if len(c.own) < mostOwn && !slices.Contains(c.own, path) {
		c.own = append(c.own, path)
	}
}

func (c *Call) projects() (list []Incident) {
	for _, path := range c.own {
		if _, ok := modeOf(path); ok {
			list = append(list, Incident{Path: path, Why: obeyed, Own: true})
		}
	}
	return list
}

// judgeContents checks the content of new files. last means that no other command runs, so that no file is half
// written.
func (w *Watcher) judgeContents(last bool) {
	for f := range w.tree.holders {
		if f.kind != unfinished || f.lost {
			continue
		}
		w.opened(f)
		for _, name := range resumed { // from which an operation would continue after its calls have ended
			e := entry{f, name}
			if why := w.content(f, name, last); w.findings[e] == nil && why != "" {
				w.convict(e, why, true)
			}
		}
	}
	for e := range w.unproven {
		if e.directory.kind == forgotten || e.directory.lost {
			delete(w.unproven, e)
			continue
		}
		w.opened(e.directory)
		if why := w.content(e.directory, e.name, last); why != "" {
			delete(w.unproven, e)
			w.convict(e, why, false)
		}
	}
}

// convict records a file to remove because of its content.
func (w *Watcher) convict(e entry, why string, wait bool) {
	path := e.directory.path() + "/" + e.name
	if by, _, late := w.suspects(e.directory, path); by != nil {
		w.find(&finding{Incident: Incident{Path: path, Why: why}, entry: e, by: by, wait: wait, late: late})
	}
}

// due removes from the list and returns the findings of an ended call or, if c is nil, of calls that ended before.
// Findings that wait for other calls are returned, but stay in the list.
func (w *Watcher) due(c *Call) (list []*finding) {
	for e, n := range w.findings {
		isDue := n.late
		if c != nil {
			isDue = n.by[c]
		}
		if !isDue {
			continue
		}
		delete(n.by, c)
		n.Later = n.wait && len(n.by) > 0
		list = append(list, n)
		if !n.Later {
			delete(w.findings, e)
		}
	}
	slices.SortFunc(list, func(a, b *finding) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

const mostReported = 200

// clean removes files for due findings and returns the outcome. It unlocks mu during that.
func (w *Watcher) clean(due []*finding) (list []Incident) {
	batch, removed := quarantine.NewBatch(w.options.Quarantine), false
	for _, n := range due {
		if !n.Later && !w.remove(n, batch) {
			continue
		}
		removed = removed || n.Err == nil && !n.Later
		if len(list) < mostReported {
			list = append(list, n.Incident)
		}
	}
	if len(due) > 0 {
		w.existing = nil
	}
	if w.more && removed { // the rest is found again
		w.more, w.tree.unseen, w.tree.full = false, slices.Clone(w.tree.roots), true
	}
	return list
}

func (w *Watcher) remove(n *finding, batch *quarantine.Batch) bool {
	w.opened(n.directory)
	if n.directory.kind == unfinished && w.content(n.directory, n.name, true) == "" {
		return false // the operation has ended
	}
	if w.options.Report || n.stays {
		return true
	}
	dir, err := w.openDirectory(n.directory)
	if err == nil {
		w.mu.Unlock()
		err = n.take(batch, dir, n.name)
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

// take removes it, and sets Kept and Lost.
func (i *Incident) take(batch *quarantine.Batch, dir int, name string) error {
	kept, err := batch.Take(dir, name, i.Path)
	if i.Kept = kept; errors.Is(err, quarantine.ErrNotKept) {
		i.Lost, err = err, nil
	}
	return err
}

// Remove copies what calls have left to the quarantine, removes it, and returns the outcome.
func (w *Watcher) Remove(found []Removal) (list []Incident) {
	batch := quarantine.NewBatch(w.options.Quarantine)
	for _, r := range found {
		i := Incident{Path: r.Path, Why: r.Why, Rule: r.Rule}
		dir, err := nofollow.Open(filepath.Dir(r.Path), unix.O_PATH|unix.O_DIRECTORY)
		if err == nil {
			if r.Still() && !w.options.Report {
				err = i.take(batch, dir, filepath.Base(r.Path))
			}
			unix.Close(dir)
		}
		i.Gone = errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
		if i.Err = err; i.Gone {
			i.Err = nil
		}
		if len(list) < mostReported {
			list = append(list, i)
		}
	}
	return list
}

func (w *Watcher) openDirectory(f *directory) (int, error) {
	return w.openBy(f, func() (int, error) { return nofollow.Open(f.path(), unix.O_PATH|unix.O_DIRECTORY) })
}

func (w *Watcher) openBy(f *directory, open func() (int, error)) (int, error) {
	if f.lost || f.kind == forgotten {
		return -1, unix.ENOENT
	}
	fd, err := open()
	if err != nil {
		return -1, err
	}
	if in, err := nofollow.Stat(fd, ""); err != nil || in.ID != f.id {
		unix.Close(fd)
		return -1, unix.ENOENT
	}
	return fd, nil
}
