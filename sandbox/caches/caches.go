// Package caches lets calls write to the machine's tool caches without changing them. It prepares, limits and removes
// the directories that the sandbox mounts. Changes by calls go to a store: a directory of the daemon that only one
// Set uses at a time.
package caches

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox/internal/helper"
)

// Cache is a directory in which tools keep what they can rebuild or download again.
type Cache struct {
	Path string // absolute and canonical
	Env  string // variable that names the directory to the tool if Path does not exist; may be ""
}

// Set is the tool caches of calls that share a store. With a nil Set, calls can only read the machine's caches. A Set
// is safe for concurrent use, except that Close must be called once, after the last call that uses it.
type Set struct {
	now     *atomic.Pointer[generation] // for calls that begin now
	private bool                        // calls cannot have overlays; see WithoutOverlays

	// Used by Limit and Close.
	mount  Mounter
	dir    string
	list   []Cache
	before *generation // for calls that began before Limit; nil = none
}

// generation is the directories of a Set until Limit replaces them.
type generation struct {
	store string
	dirs  []cacheDir
	lock  *os.File // locked while any call can change the caches
}

// A Mounter mounts overlays, like launch.Overlays. For each it returns the mount, or the reason why there
// is none.
type Mounter func(ctx context.Context, list []helper.Overlay) (trees []*os.File, reasons []error, err error)

// Store is a directory in which Open keeps what calls change.
type Store struct {
	Path  string
	Bytes int64
	Used  time.Time // when it was last opened; zero if it cannot be measured
}

const lockName = "lock"

type cacheDir struct {
	of     string   // Cache.Path
	path   string   // path inside the sandbox
	env    string   // NAME=path if the machine lacks the cache; may be ""
	tree   *os.File // overlay over the machine's directory; nil = use from
	from   string   // private directory that calls see instead
	reason error    // why an existing directory has no overlay
}

// Values of Kind.
const (
	overlaid = "overlay" // the machine's caches with the changes of calls on top
	private  = "private" // for at least one cache, only the changes of calls
)

// Env returns environment entries for the caches that the machine lacks.
func (c *Set) Env() []string {
	var env []string
	if c != nil {
		for _, f := range c.now.Load().dirs {
			if f.env != "" {
				env = append(env, f.env)
			}
		}
	}
	return env
}

// Problems returns why calls do not see certain directories, by directory.
func (c *Set) Problems() map[string]error {
	problems := map[string]error{}
	if c != nil {
		for _, f := range c.now.Load().dirs {
			if f.reason != nil {
				problems[f.path] = f.reason
			} else if c.private && f.tree != nil {
				problems[f.path] = errPrivate
			}
		}
	}
	return problems
}

// Close closes the directories. The next Open finds their contents.
func (c *Set) Close() {
	if c != nil {
		c.before.close()
		c.now.Load().close()
	}
}

func (g *generation) close() {
	if g == nil {
		return
	}
	for _, f := range g.dirs {
		f.tree.Close() // nil is allowed
	}
	g.lock.Close()
}

// Version identifies the directories for calls that begin now. Limit changes it.
func (c *Set) Version() any {
	if c == nil {
		return nil
	}
	return c.now.Load()
}

// Contain reports whether a call may write a path because it is in a cache.
func (c *Set) Contain(path string) bool {
	return c != nil && slices.ContainsFunc(c.now.Load().dirs, func(f cacheDir) bool { return paths.Within(path, f.path) })
}

// Kind returns "overlay" if calls see the machine's caches with their own changes, "private" if they
// see only their own changes of some, "" without caches.
func (c *Set) Kind() string {
	switch {
	case c == nil || len(c.now.Load().dirs) == 0:
		return ""
	case len(c.Problems()) > 0:
		return private
	}
	return overlaid
}

// WithoutOverlays returns the same caches for calls that cannot have mounts.
func (c *Set) WithoutOverlays() *Set {
	if c == nil {
		return nil
	}
	return &Set{now: c.now, private: true}
}

var errPrivate = errors.New("an overlay cannot be passed through bwrap")
