// Package masks computes the sandbox.MaskSet of a call: the existing files and directories that an ask or deny rule
// about paths hides from the call, or makes read-only for it.
//
// sandbox/protect finds the names. Only explicit rules create masks, never a default.
package masks

import (
	"context"
	"sync"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/nofollow"
	"github.com/toold/toold/sandbox/protect"
)

// A Tracker knows the existing names to which rules apply. A nil Tracker masks nothing. It is safe for concurrent
// use. Its Watcher calls Listed, Wants, Changed and Moved.
type Tracker struct {
	roots   []string
	watcher *protect.Watcher
	opened  int64 // files unchanged since this time, in nanoseconds, were not created by a call

	mu      sync.Mutex
	base    *policy.Policy // policy for which names were found
	anyone  *policy.Policy // base with the rules for every client
	listed  chan struct{}  // closed when the names for base are known
	names   names
	lost    names                  // names in directories that were moved or removed
	ghosts  map[string]*name       // links that calls may have replaced, by their former target
	note    protect.Note           // stores ghosts
	linked  map[string]linked      // files with several hard links, by identity
	repos   map[string]*repository // by directory; nil = in none
	active  map[*Call]struct{}
	begun   bool // a call has begun
	indexes map[string]*index
	last    *compiled // for calls without approved effects; nil = outdated
}

// New returns a Tracker of the roots and its Watcher, which the caller must close.
func New(o protect.Options, p *policy.Policy) (*Tracker, *protect.Watcher, error) {
	t := newTracker(o.Roots, p)
	t.restore(o)
	o.Observer = t
	var err error
	t.watcher, err = protect.New(o)
	return t, t.watcher, err
}

func newTracker(roots []string, p *policy.Policy) *Tracker {
	t := &Tracker{roots: roots, opened: nofollow.Stamp().UnixNano(), active: map[*Call]struct{}{}, indexes: map[string]*index{}, ghosts: map[string]*name{}}
	t.reset(p)
	close(t.listed)
	return t
}

// Beside returns a Tracker and a Watcher like t and w for another directory of one call. The caller must close the
// Watcher. Each is nil if t or w is.
func Beside(t *Tracker, w *protect.Watcher, root string) (*Tracker, *protect.Watcher, error) {
	if t == nil {
		beside, err := w.Beside(root, nil)
		return nil, beside, err
	}
	beside := newTracker([]string{root}, t.policy())
	watcher := t.watcher
	if w != nil {
		watcher = w
	}
	var err error
	beside.watcher, err = watcher.Beside(root, beside)
	return beside, beside.watcher, err
}

func (t *Tracker) policy() *policy.Policy {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.base
}

// reset forgets all names in order to find those for a policy. The caller holds mu.
func (t *Tracker) reset(p *policy.Policy) {
	t.base, t.anyone, t.listed = p.Root(), p.ForAnyone(), make(chan struct{})
	t.names, t.lost, t.repos, t.last = names{}, names{}, map[string]*repository{}, nil
}

// Use finds the names for a policy, unless they are known. It returns an error if ctx ends first.
func (t *Tracker) Use(ctx context.Context, p *policy.Policy) error {
	if t == nil {
		return nil
	}
	if err := t.watcher.Sync(ctx); err != nil { // the names reflect what calls have done to links
		return err
	}
	t.mu.Lock()
	fresh := t.base != p.Root()
	if fresh {
		t.relink()
		t.reset(p)
	}
	listed := t.listed
	t.mu.Unlock()
	if fresh {
		t.watcher.List()
		close(listed)
	}
	select {
	case <-listed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lockUnder locks mu once the names for a policy are known. It returns an error if ctx ends first.
func (t *Tracker) lockUnder(ctx context.Context, p *policy.Policy) error {
	for t.mu.Lock(); t.base != p.Root(); t.mu.Lock() {
		t.mu.Unlock()
		if err := t.Use(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Set returns the masks that are known so far; nil = none. opened are effects that a person approved. The error
// is that of ctx if it ends first, or ErrTooMany.
func (t *Tracker) Set(ctx context.Context, p *policy.Policy, opened []policy.Effect) (*sandbox.MaskSet, error) {
	if t == nil || p == nil {
		return nil, nil
	}
	if err := t.lockUnder(ctx, p); err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	c, err := t.compile(p, opened)
	return c.set(), err
}

// Usual returns the masks of a call without approved effects; nil = none, or not yet known.
func (t *Tracker) Usual() *sandbox.MaskSet {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c, _ := t.compile(t.base, nil) // nil after an error
	return c.set()
}

func (t *Tracker) root(path string) string {
	for _, root := range t.roots {
		if paths.Below(path, root) {
			return root
		}
	}
	return ""
}
