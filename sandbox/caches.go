package sandbox

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toold/toold/internal/paths"
)

// Cache is a directory in which tools keep what they can rebuild or fetch again.
type Cache struct {
	Path string // absolute and canonical
	Env  string // the variable by which the tool finds the directory if Path does not exist; may be empty
}

// Caches let calls write to the machine's tool caches without changing them: their changes go to a
// directory of the daemon, shared by all calls of one Caches.
//
// With nil, calls can only read the machine's caches. Methods may be called concurrently; Close
// must be called once no call uses the Caches.
type Caches struct {
	now     *atomic.Pointer[cacheSet] // for calls that begin
	private bool                      // calls cannot have overlays: see withoutOverlays

	// Used by Limit and Close.
	dir    string
	list   []Cache
	before *cacheSet // for calls that began before Limit; nil = none
}

type cacheSet struct {
	store string
	dirs  []cacheDir
	lock  *os.File // locked as long as a call can change the caches
}

// CacheStore is a directory in which OpenCaches keeps what calls change.
type CacheStore struct {
	Path  string
	Bytes int64
	Used  time.Time // when it was last opened
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

// Values of Report.Caches.
const (
	cachesOverlay = "overlay" // the machine's caches and the changes of calls
	cachesPrivate = "private" // for at least one cache only the changes of calls
)

// Env returns environment entries that name the caches the machine lacks.
func (c *Caches) Env() []string {
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
func (c *Caches) Problems() map[string]error {
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

// Close closes the directories. Their contents stay for the next OpenCaches.
func (c *Caches) Close() {
	if c != nil {
		c.before.close()
		c.now.Load().close()
	}
}

func (s *cacheSet) close() {
	if s == nil {
		return
	}
	for _, f := range s.dirs {
		f.tree.Close() // allowed on nil
	}
	s.lock.Close()
}

// set returns the caches for calls that begin; nil for nil.
func (c *Caches) set() *cacheSet {
	if c == nil {
		return nil
	}
	return c.now.Load()
}

// contain reports whether a call may write a path because a cache contains it.
func (c *Caches) contain(path string) bool {
	return c != nil && slices.ContainsFunc(c.now.Load().dirs, func(f cacheDir) bool { return paths.Within(path, f.path) })
}

func (c *Caches) kind() string {
	switch {
	case c == nil || len(c.now.Load().dirs) == 0:
		return ""
	case len(c.Problems()) > 0:
		return cachesPrivate
	}
	return cachesOverlay
}

// withoutOverlays returns the same caches for calls that cannot have mounts.
func (c *Caches) withoutOverlays() *Caches {
	if c == nil {
		return nil
	}
	return &Caches{now: c.now, private: true}
}

var errPrivate = errors.New("an overlay cannot be passed through bwrap")
