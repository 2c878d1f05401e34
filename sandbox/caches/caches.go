// Package caches lets calls write to the machine's tool caches without changing them.
//
// It prepares the directories, bounds and removes them; the sandbox mounts them. Changes of calls go
// to a store: a directory of the daemon, which only one Set uses at a time.
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

// Cache is a directory in which tools keep what they can rebuild or fetch again.
type Cache struct {
	Path string // absolute and canonical
	Env  string // the variable by which the tool finds the directory if Path does not exist; may be empty
}

// Set is the tool caches of calls, which share its store.
//
// With nil, calls can only read the machine's caches. Methods may be called concurrently; Close
// must be called once no call uses the Set.
type Set struct {
	now     *atomic.Pointer[generation] // for calls that begin
	private bool                        // calls cannot have overlays: see WithoutOverlays

	// Used by Limit and Close.
	mount  Mounter
	dir    string
	list   []Cache
	before *generation // for calls that began before Limit; nil = none
}

// generation is the directories of a Set until Limit resets them.
type generation struct {
	store string
	dirs  []cacheDir
	lock  *os.File // locked as long as a call can change the caches
}

// A Mounter makes overlays: sandbox.Overlays. For each it returns the mount, or the reason why there
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
	path   string   // its path inside the sandbox
	env    string   // NAME=path, if the machine lacks the cache; may be empty
	tree   *os.File // the overlay over the machine's directory; nil = use from
	from   string   // the private directory that calls see instead
	reason error    // why an existing directory has no overlay
}

// Values of Kind.
const (
	overlaid = "overlay" // the machine's caches and the changes of calls
	private  = "private" // for at least one cache only the changes of calls
)

// Env returns environment entries that name the caches the machine lacks.
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

// Problems maps each directory that calls do not see to the reason.
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

// Close closes the directories. Their contents stay for the next Open.
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
		f.tree.Close() // allowed on nil
	}
	g.lock.Close()
}

// Version identifies the directories for calls that begin, which Limit replaces.
func (c *Set) Version() any {
	if c == nil {
		return nil
	}
	return c.now.Load()
}

// Contain reports whether a call may write a path because a cache contains it.
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
