package masks

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/protect"
)

// Listed takes up everything that is in a directory. It reports whether rules are about
// something in it.
func (t *Tracker) Listed(dir string, entries []fs.DirEntry) (matters bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	there := map[string]bool{}
	for _, e := range entries {
		path := dir + "/" + e.Name()
		if t.wants(path) || e.Type()&fs.ModeSymlink != 0 && t.isWay(path) {
			there[path] = true
			t.look(path)
		}
	}
	for path := range t.names[dir] {
		if !there[path] {
			t.forget(path)
		}
	}
	return len(there) > 0
}

// Wants reports whether rules are about a path, or about something in a directory.
func (t *Tracker) Wants(path string, dir bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if filepath.Base(path) == ".git" || t.names.at(path) != nil {
		return true
	}
	_, some := t.anyone.BlocksBelow(path)
	return some || dir && len(t.names.below(path)) > 0
}

func (t *Tracker) wants(path string) bool {
	if t.names.at(path) != nil {
		return true
	}
	_, reads := t.anyone.Blocks(policy.Read, path, true)
	_, writes := t.anyone.Blocks(policy.Write, path, true)
	return reads || writes
}

// Changed looks at what is under a path now.
func (t *Tracker) Changed(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if filepath.Base(path) == ".git" {
		t.forgetRepositories()
	}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		for _, n := range t.names.below(path) {
			t.forget(n.path)
			t.lost.put(n) // the directory may turn up under another path
		}
	}
	t.look(path)
}

// mostLost bounds the directories whose names are kept after they went.
const mostLost = 1000

// Moved takes up the new path of a directory. What is in it is to be listed again where
// rules are about the place, and not about names alone.
func (t *Tracker) Moved(from, to string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	more := len(t.lost) > mostLost
	if more {
		t.lost = names{}
	}
	for _, was := range append(t.names.below(from), t.lost.below(from)...) {
		t.forget(was.path)
		t.lost.remove(was.path)
		path := to + was.path[len(from):]
		t.look(path)
		if n := t.names.at(path); n != nil {
			n.made = was.made
		}
		t.look(was.path) // another directory may have the old name by now
	}
	t.look(to)
	return more || t.isWay(to)
}

// isWay reports whether a rule names something in a directory by its path.
func (t *Tracker) isWay(path string) bool {
	_, ok := t.anyone.BlocksBelow(path)
	return ok && t.root(path) != ""
}

// look takes up what is under a path, as far as rules are about it. The caller holds mu.
func (t *Tracker) look(path string) {
	fresh, was := t.see(path), t.names.at(path)
	switch {
	case fresh == nil:
		t.forget(path)
		return
	case was == nil:
	case was.is == fresh.is && was.target == fresh.target:
		return
	default:
		fresh.made = was.made
		t.haunt(was)
	}
	if fresh.target != path && t.making() {
		fresh.calm = stateOf(fresh.target)
	}
	t.names.put(fresh)
	t.last = nil
	t.replaced(fresh)
	t.planted(fresh, was == nil)
}

// see returns the name of a path; nil when there is nothing, or no rule is about it.
func (t *Tracker) see(path string) *name {
	n := &name{path: path, target: path}
	if !n.judge(t, t.anyone) {
		if n.way = t.isWay(path); !n.way {
			return nil
		}
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	n.link = info.Mode()&fs.ModeSymlink != 0
	switch {
	case n.way && !n.link:
		return nil
	case n.way:
		return n
	case n.link:
		n.target, err = filepath.EvalSymlinks(path)
	}
	if err == nil && t.root(n.target) != "" { // what is elsewhere the configuration hides
		info, err = os.Lstat(n.target)
		n.dir, n.is = err == nil && info.IsDir(), stateOf(n.target).file
	}
	if n.is == "" {
		n.target = path
	}
	return n
}

// detours reports whether it leads to a directory, or to nothing yet.
func (n *name) detours() bool {
	info, err := os.Stat(n.path)
	return n.way && (err != nil || info.IsDir())
}

// relink follows the links again: what is on their ways may have changed. The caller holds mu.
func (t *Tracker) relink() {
	var links []string
	for _, some := range t.names {
		for path, n := range some {
			if n.link {
				links = append(links, path)
			}
		}
	}
	for _, path := range links {
		t.look(path)
	}
}

func (t *Tracker) forget(path string) {
	if n := t.names.at(path); n != nil {
		t.names.remove(path)
		t.last = nil
		t.haunt(n)
	}
}

// haunt keeps masked what a link led to: a call can replace a link, which is no mount, and read
// its target by another name. A target that has not changed since a call linked it is not masked.
func (t *Tracker) haunt(n *name) {
	if n.target == n.path || n.calm == stateOf(n.target) || len(t.active) == 0 {
		return
	}
	t.ghosts[n.target] = n
	t.store()
}

// name is an existing file or directory that rules are about, be it for some clients only.
type name struct {
	path   string
	target string // what a symbolic link leads to; else path
	link   bool
	way    bool // no rule is about the link itself, but one is about a place behind it
	dir    bool
	is     string // which file the target is; "" = there is none, or it is in no root

	read, write policy.Block // zero: none is about it
	reads       bool         // read is one
	writes      bool         // write is one

	held held
	made state // in which a call left it, having made it; zero = none did
	calm state // of the target when a call made the link; zero = none did
}

// judge takes up what a policy says about reading and writing the name, and reports whether
// it says something. A built-in rule is not about what other people's projects are made of.
func (n *name) judge(t *Tracker, p *policy.Policy) bool {
	root := t.root(n.path)
	own := !protect.InDependencies(n.path, root)
	n.read, n.reads = p.Blocks(policy.Read, n.path, own)
	n.write, n.writes = p.Blocks(policy.Write, n.path, own)
	return root != "" && (n.reads || n.writes)
}

type names map[string]map[string]*name

func (s names) at(path string) *name { return s[filepath.Dir(path)][path] }

func (s names) put(n *name) {
	dir := filepath.Dir(n.path)
	if s[dir] == nil {
		s[dir] = map[string]*name{}
	}
	s[dir][n.path] = n
}

func (s names) remove(path string) {
	dir := filepath.Dir(path)
	if delete(s[dir], path); len(s[dir]) == 0 {
		delete(s, dir)
	}
}

func (s names) below(dir string) (list []*name) {
	for in, some := range s {
		if in != dir && !paths.Below(in, dir) {
			continue
		}
		for _, n := range some {
			list = append(list, n)
		}
	}
	return list
}
