package masks

import (
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/internal/nofollow"
	"github.com/toold/toold/sandbox/protect"
)

// Listed records the entries of a directory, and reports whether one has a rule.
func (t *Tracker) Listed(dir string, entries []fs.DirEntry, moved bool) (matters bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	there := map[string]bool{}
	for _, e := range entries {
		path := dir + "/" + e.Name()
		if t.wants(path) || e.Type()&fs.ModeSymlink != 0 && t.isWay(path) {
			there[path] = true
			t.look(path, moved && stateOf(path).changed >= t.opened)
		}
	}
	for path := range t.names[dir] {
		if !there[path] {
			t.forget(path)
		}
	}
	return len(there) > 0
}

// Wants reports whether a rule applies to a path or, if dir is set, may apply to something below it.
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

// Changed updates the state of a path.
func (t *Tracker) Changed(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if filepath.Base(path) == ".git" {
		clear(t.repos)
	}
	switch info, err := t.lstat(path); {
	case err != nil && !isGone(err):
		return
	case err != nil || !info.IsDir():
		for _, n := range t.names.below(path) {
			t.forget(n.path)
			t.lost.put(n) // the directory may reappear under another path
		}
	}
	t.look(path, true)
}

// maxLost limits the names kept of moved or removed directories.
const maxLost = 1000

// Moved updates the path of a directory. It reports whether to list the directory again, because rules depend on its
// path.
func (t *Tracker) Moved(from, to string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	more := len(t.lost) > maxLost
	if more {
		t.lost = names{}
	}
	for _, was := range append(t.names.below(from), t.lost.below(from)...) {
		t.forget(was.path)
		t.lost.remove(was.path)
		path := to + was.path[len(from):]
		t.look(path, false)
		if n := t.names.at(path); n != nil {
			n.made = was.made
		}
		t.look(was.path, false) // another directory may already have the old name
	}
	t.look(to, true)
	return more || t.isWay(to)
}

func (t *Tracker) isWay(path string) bool {
	_, ok := t.anyone.BlocksBelow(path)
	return ok && t.root(path) != ""
}

// look updates a path with rules. If the directory cannot be opened, the known state remains: a call may have removed
// permissions that another call could restore. came means that the name has just appeared. The caller holds mu.
func (t *Tracker) look(path string, came bool) {
	fresh, err := t.see(path)
	was := t.names.at(path)
	switch {
	case err != nil && !isGone(err):
		return
	case fresh == nil:
		t.forget(path)
		return
	case was == nil:
		fresh.came = came
	case was.is == fresh.is && was.target == fresh.target:
		return
	default:
		fresh.made, fresh.came = was.made, was.came || came
		t.haunt(was)
	}
	if fresh.target != path && t.making() {
		fresh.targetState = stateOf(fresh.target)
	}
	t.names.put(fresh)
	t.last = nil
	t.replaced(fresh)
	t.planted(fresh, was == nil)
}

// isGone reports whether an error means that a path is missing, or that calls cannot open it.
func isGone(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EPERM)
}

// lstat examines a path. It restores permissions that calls may have removed from directories below the root. EACCES
// means that they were removed again.
func (t *Tracker) lstat(path string) (fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if !errors.Is(err, syscall.EACCES) {
		return info, err
	}
	root := t.root(path)
	if root == "" {
		return nil, syscall.EPERM
	}
	if err = nofollow.OpenUpTo(root, filepath.Dir(path), time.Time{}); err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

// resolve is filepath.EvalSymlinks, except that it restores permissions like lstat.
func (t *Tracker) resolve(path string) (target string, err error) {
	const most = 40 // calls may remove them again and again
	for range most {
		target, err = filepath.EvalSymlinks(path)
		var closed *fs.PathError
		if !errors.As(err, &closed) || closed.Err != syscall.EACCES {
			break
		}
		if _, failed := t.lstat(closed.Path); failed != nil {
			return "", failed
		}
	}
	return target, err
}

// see returns the name of a path, or nil if it is missing or has no rule.
func (t *Tracker) see(path string) (*name, error) {
	n := &name{path: path, target: path}
	if !n.judge(t, t.anyone) {
		if n.way = t.isWay(path); !n.way {
			return nil, nil
		}
	}
	info, err := t.lstat(path)
	if err != nil {
		return nil, err
	}
	n.link = info.Mode()&fs.ModeSymlink != 0
	switch {
	case n.way && !n.link:
		return nil, nil
	case n.way:
		return n, nil
	case n.link:
		n.target, err = t.resolve(path)
	}
	if errors.Is(err, syscall.EACCES) {
		return nil, err
	}
	if err == nil && t.root(n.target) != "" { // outside of the roots, the configuration hides files
		info, err = t.lstat(n.target)
		n.dir, n.is = err == nil && info.IsDir(), stateOf(n.target).file
	}
	if n.is == "" {
		n.target = path
	}
	return n, nil
}

// detours reports whether a link leads to a directory, or is dangling.
func (n *name) detours() bool {
	info, err := os.Stat(n.path)
	return n.way && (err != nil || info.IsDir())
}

// relink restores permissions that calls removed, and resolves the links again, since their targets may have changed.
// The caller holds mu.
func (t *Tracker) relink() {
	var links []string
	for n := range t.names.all() {
		_, _ = t.lstat(n.path)
		if n.link {
			links = append(links, n.path)
		}
	}
	for _, path := range links {
		t.look(path, false)
	}
}

func (t *Tracker) forget(path string) {
	if n := t.names.at(path); n != nil {
		t.names.remove(path)
		t.last = nil
		t.haunt(n)
	}
}

// haunt keeps the target of a former link masked: a call can replace a link, which is not a mount, and read the
// target under another name. A target that has not changed since a call created the link is not masked.
func (t *Tracker) haunt(n *name) {
	if n.target == n.path || n.targetState == stateOf(n.target) || len(t.active) == 0 {
		return
	}
	t.ghosts[n.target] = n
	t.store()
}

// name is an existing file or directory with rules, perhaps only for some clients.
type name struct {
	path   string
	target string // target of a symbolic link; otherwise path
	link   bool
	way    bool // the rule is about a path beyond the link, not the link
	dir    bool
	is     string // identity of the target; "" = missing, or outside of the roots

	read, write policy.Block // zero = no rule
	reads       bool
	writes      bool

	tracked     tracked
	came        bool  // it appeared while the Watcher ran, and was not found by listing a directory
	made        state // state as a call created it; zero = no call did
	targetState state // its state when a call created the link; zero = no call did
}

// judge sets the rules for the name, and reports whether there are any. Built-in rules do not apply in dependencies.
func (n *name) judge(t *Tracker, p *policy.Policy) bool {
	root := t.root(n.path)
	own := !protect.InDependencies(n.path, root)
	n.read, n.reads = p.Blocks(policy.Read, n.path, own)
	n.write, n.writes = p.Blocks(policy.Write, n.path, own)
	return root != "" && (n.reads || n.writes)
}

type names map[string]map[string]*name

func (s names) all() iter.Seq[*name] {
	return func(yield func(*name) bool) {
		for _, some := range s {
			for _, n := range some {
				if !yield(n) {
					return
				}
			}
		}
	}
}

func (s names) at(path string) *name { return s[paths.Above(path)][path] }

func (s names) put(n *name) {
	dir := paths.Above(n.path)
	if s[dir] == nil {
		s[dir] = map[string]*name{}
	}
	s[dir][n.path] = n
}

func (s names) remove(path string) {
	dir := paths.Above(path)
	if delete(s[dir], path); len(s[dir]) == 0 {
		delete(s, dir)
	}
}

func (s names) below(dir string) (list []*name) {
	for in, some := range s {
		if in == dir || paths.Below(in, dir) {
			list = slices.AppendSeq(list, maps.Values(some))
		}
	}
	return list
}
