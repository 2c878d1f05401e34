package sandbox

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/toold/toold/internal/paths"
)

// Cache is a folder in which tools keep what they can make or fetch again.
type Cache struct {
	Path string // absolute and canonical
	Env  string // the variable that names a folder to the tool, for where Path does not exist; may be empty
}

// Caches let calls write into the machine's tool caches without changing them: what a call
// changes goes into a directory of the daemon's, which all calls of one Caches share.
//
// With nil, calls can only read the machine's. The methods may be called concurrently, Close once
// no call with the Caches runs.
type Caches struct {
	now     *atomic.Pointer[cacheSet] // what calls that begin are given
	private bool                      // no overlay can be given to calls: see withoutOverlays

	// Of Limit and Close.
	dir    string
	list   []Cache
	before *cacheSet // what calls may still be given that began before Limit; nil = nothing
}

type cacheSet struct {
	store   string
	folders []cacheFolder
	lock    *os.File // held as long as a call can change what the caches hold
}

// CacheStore is a folder in which OpenCaches keeps what calls change.
type CacheStore struct {
	Path  string
	Bytes int64
	Used  time.Time // when it was opened last
}

const lockName = "lock"

type cacheFolder struct {
	of     string   // Cache.Path
	path   string   // where calls see it
	env    string   // NAME=path, for a cache that the machine does not have; may be empty
	tree   *os.File // the overlay over the machine's folder; nil = from
	from   string   // the private folder that calls see instead
	reason error    // why there is no overlay over a folder that exists
}

// The words of Report.Caches.
const (
	cachesOverlay = "overlay" // what the machine has and what calls have added
	cachesPrivate = "private" // of one of them only what calls have added
)

// Env is what tells tools where caches are that the machine does not have, as
// entries of an environment.
func (c *Caches) Env() []string {
	var env []string
	if c != nil {
		for _, f := range c.now.Load().folders {
			if f.env != "" {
				env = append(env, f.env)
			}
		}
	}
	return env
}

// Problems tell, for each folder of the machine that calls do not see, its path
// and why.
func (c *Caches) Problems() map[string]error {
	problems := map[string]error{}
	if c != nil {
		for _, f := range c.now.Load().folders {
			if f.reason != nil {
				problems[f.path] = f.reason
			} else if c.private && f.tree != nil {
				problems[f.path] = errPrivate
			}
		}
	}
	return problems
}

// Close lets the folders go. What calls have put there stays for the next time.
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
	for _, f := range s.folders {
		f.tree.Close() // allowed on nil
	}
	s.lock.Close()
}

// set is what calls that begin are given; nil for nil.
func (c *Caches) set() *cacheSet {
	if c == nil {
		return nil
	}
	return c.now.Load()
}

// hold reports whether a call may write a path because it lies in a cache.
func (c *Caches) hold(path string) bool {
	return c != nil && slices.ContainsFunc(c.now.Load().folders, func(f cacheFolder) bool { return paths.Within(path, f.path) })
}

func (c *Caches) kind() string {
	switch {
	case c == nil || len(c.now.Load().folders) == 0:
		return ""
	case len(c.Problems()) > 0:
		return cachesPrivate
	}
	return cachesOverlay
}

// withoutOverlays are the same caches for calls that cannot have mounts.
func (c *Caches) withoutOverlays() *Caches {
	if c == nil {
		return nil
	}
	return &Caches{now: c.now, private: true}
}

var errPrivate = errors.New("an overlay cannot be passed through bwrap")
