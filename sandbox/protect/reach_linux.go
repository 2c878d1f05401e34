package protect

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

type reach struct {
	Since   time.Time       // when the call began
	Covered map[string]bool // paths that existed and were read-only for the call
	Links   map[string]link // symbolic links to protected names that are not covered; zero for a missing component
	Granted []string        // what it was allowed to change
}

// link identifies a symbolic link by its ctime, which no program can set (inode(7)).
type link struct {
	Inode   uint64
	Changed int64 // nanoseconds
}

func linkOf(in nofollow.Info) link { return link{in.Inode, in.Changed.UnixNano()} }

// may reports whether a path, a parent of it or something below it was granted.
func (r *reach) may(path string) bool {
	return slices.ContainsFunc(r.Granted, func(g string) bool {
		return path == g || strings.HasPrefix(path, g+"/") || strings.HasPrefix(g, path+"/")
	})
}

// could reports whether the call may have created what is at a path. What has not changed since the call began
// existed before, if it is in a covered directory or late is set.
func (r *reach) could(path string, late bool) bool {
	if r.Covered[path] {
		return false
	}
	if was, linked := r.Links[path]; linked {
		in, err := nofollow.Lstat(path)
		return err != nil || linkOf(in) != was
	}
	if late && !r.after(path) {
		return false
	}
	for dir := filepath.Dir(path); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if r.Covered[dir] {
			return r.after(path)
		}
	}
	return true
}

func (r *reach) after(path string) bool {
	changed, _, ok := timesOf(path)
	return !ok || !changed.Before(r.Since)
}

// join returns what either of two calls could change.
func (r reach) join(other reach) reach {
	both := reach{Since: r.Since, Covered: maps.Clone(r.Covered), Links: maps.Clone(r.Links), Granted: slices.Concat(r.Granted, other.Granted)}
	maps.DeleteFunc(both.Covered, func(path string, _ bool) bool { return !other.Covered[path] })
	maps.DeleteFunc(both.Links, func(path string, l link) bool { return other.Links[path] != l })
	if other.Since.Before(both.Since) {
		both.Since = other.Since
	}
	slices.Sort(both.Granted)
	both.Granted = slices.Compact(both.Granted)
	return both
}
