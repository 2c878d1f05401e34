package masks

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/sandbox/internal/nofollow"
	"github.com/toold/toold/sandbox/protect"
)

// Reasons to remove what a call left under a name with a rule.
const (
	manyNames = "rules keep a file of this name from calls, and this one had other names: what the user writes into it, calls could read there"
	noFile    = "rules keep a file of this name from calls, and this is a FIFO, socket or device: what the user writes into it, its maker could read"
	detour    = "rules keep what is in a directory of this name from calls, and this link leads elsewhere: what the user writes there, calls could read"
	tooMany   = "rules are about so many names that the others could not be kept from calls"
)

const often = 256

// planted ends the running calls if a special file appeared, which they could read at once, or so many names that
// other calls could not start. The caller holds mu.
func (t *Tracker) planted(n *name, fresh bool) {
	if n.way {
		return
	}
	many, brought, now := false, false, stateOf(n.path)
	for c := range t.active {
		brought = brought || c.brought(n, now)
		if fresh && c.made(n, now) {
			many = c.floods() || many
		}
	}
	special := now.special && n.reads && !n.link
	byCall := special && brought
	if byCall || many && !t.fits() {
		for c := range t.active {
			c.violated()
		}
	}
}

// floods counts a new name. It reports whether to check that all names can still be masked.
func (c *Call) floods() bool {
	c.fresh++
	return c.fresh >= Most && c.fresh%often == 0
}

// fits reports whether everything with a rule can be masked. The caller holds mu.
func (t *Tracker) fits() bool {
	b := builder{t: t, by: t.anyone, all: true, hide: cut{}, fix: cut{}}
	for n := range t.names.all() {
		b.judge(n)
	}
	_, err := b.build()
	return err == nil
}

// plantedBy lists what a call left under names with rules and must be removed: hard links, special files, links that
// lead elsewhere, and every new name if not all could be masked. The caller holds mu.
func (t *Tracker) plantedBy(c *Call) (list []protect.Removal) {
	all := c.fresh > 0 && !t.fits()
	for n := range t.names.all() {
		now, was := stateOf(n.path), c.began[n.path]
		made := c.made(n, now)
		own := made || n.made.file != "" && n.made.file == now.file
		replaced := was.file != "" && was.file != now.file
		if c.isMasked(n.path) || !own && !replaced {
			continue
		}
		why, by := n.offends(now, was), cmp.Or(n.read.Rule, n.write.Rule)
		if n.way {
			by, _ = t.anyone.BlocksBelow(n.path)
		}
		isNew := made && !n.way
		if why == "" && isNew && all {
			why = tooMany
		}
		if why != "" {
			list = append(list, protect.Removal{Path: n.path, Why: why, Rule: by, Still: func() bool { return stateOf(n.path).file == now.file }})
		}
	}
	slices.SortFunc(list, func(a, b protect.Removal) int { return strings.Compare(a.Path, b.Path) })
	return list
}

func (n *name) offends(now, was state) string {
	switch {
	case n.way:
		if was.file != now.file && n.detours() {
			return detour
		}
	case !n.reads || n.link:
	case now.special:
		return noFile
	case !n.dir && now.links > 1:
		return manyNames
	}
	return ""
}

type linked struct {
	links uint32
	paths []string
}

// findLinked finds the other names of masked files with several hard links. The caller holds mu.
func (t *Tracker) findLinked(files map[string]uint32) {
	known := len(files) == len(t.linked)
	for id, links := range files {
		was := t.linked[id]
		known = known && was.links == links
		for _, path := range was.paths {
			_, _ = t.lstat(path)
			known = known && stateOf(path).file == id
		}
	}
	if known {
		return
	}
	t.linked, t.last = map[string]linked{}, nil
	for id, links := range files {
		t.linked[id] = linked{links: links}
	}
	for _, root := range t.roots {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if e.IsDir() {
				openClosed(root, path, e)
				return nil
			}
			if id := stateOf(path).file; files[id] > 0 {
				t.linked[id] = linked{files[id], append(t.linked[id].paths, path)}
			}
			return nil
		})
	}
}

// openClosed restores permissions that a call removed from a directory, since another call could restore them.
func openClosed(root, path string, e fs.DirEntry) {
	if info, err := e.Info(); err == nil && info.Mode().Perm()&0o500 != 0o500 {
		_ = nofollow.OpenUpTo(root, path, time.Time{})
	}
}

type ghost struct{ Path, Target string }

// store records which links calls may have replaced. The caller holds mu.
func (t *Tracker) store() {
	t.last = nil
	list := []ghost{}
	for target, n := range t.ghosts {
		list = append(list, ghost{n.path, target})
	}
	t.note.Store(list)
}

func (t *Tracker) restore(o protect.Options) {
	t.note = o.Note("links")
	var list []ghost
	t.note.Load(&list)
	for _, g := range list {
		if info, err := t.lstat(g.Target); err == nil && t.root(g.Target) != "" {
			t.ghosts[g.Target] = &name{path: g.Path, target: g.Target, link: true, dir: info.IsDir(), is: stateOf(g.Target).file}
		}
	}
}
