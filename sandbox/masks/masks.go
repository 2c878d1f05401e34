// Package masks finds what path rules of a policy keep from the programs of a call: the
// existing files and directories of the workspace, and of what calls may write, that an
// asking or denying rule is about. It makes a sandbox.MaskSet of them for each call.
//
// The names come from the scan of sandbox/protect. The package decides nothing (the policy
// does) and hides nothing (the sandbox does). Only explicit rules mask, never a default.
package masks

import (
	"sync"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/protect"
)

// A Tracker knows which names the rules are about. A nil Tracker masks nothing. Its methods
// may be called concurrently. Listed, Wants, Changed and Moved are for its Watcher.
type Tracker struct {
	roots   []string
	watcher *protect.Watcher

	mu      sync.Mutex
	base    *policy.Policy // whose rules the names were looked for by
	anyone  *policy.Policy // base, with the rules for every client
	listed  chan struct{}  // closed when the names under base have been listed
	names   names
	lost    names                  // in directories that are not where they were
	ghosts  map[string]*name       // links that calls may have replaced, by what they led to
	note    protect.Note           // lists them
	linked  map[string]linked      // files of several names, by identity
	repos   map[string]*repository // by directory; nil = it is in none
	active  map[*Call]struct{}
	begun   bool              // a call has
	indexes map[string]*index // by path
	last    *compiled         // for calls of which nothing is lifted; nil = to be made
}

// New returns a Tracker of the roots under a policy, and the Watcher that shows it what is
// there. The caller closes the Watcher.
func New(o protect.Options, p *policy.Policy) (*Tracker, *protect.Watcher, error) {
	t := newTracker(o.Roots, p)
	t.restore(o)
	o.Sight = t
	var err error
	t.watcher, err = protect.New(o)
	return t, t.watcher, err
}

func newTracker(roots []string, p *policy.Policy) *Tracker {
	t := &Tracker{roots: roots, active: map[*Call]struct{}{}, indexes: map[string]*index{}, ghosts: map[string]*name{}}
	t.reset(p)
	close(t.listed) // the Watcher shows them
	return t
}

// Beside returns a Watcher like w and a Tracker like t, but of another directory: for one
// call that may write there too. The caller closes the Watcher. Each is nil for a nil one.
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

// reset forgets all names, to look for those of a policy. Needs mu.
func (t *Tracker) reset(p *policy.Policy) {
	t.base, t.anyone, t.listed = p.Root(), p.ForAnyone(), make(chan struct{})
	t.names, t.lost, t.repos, t.last = names{}, names{}, map[string]*repository{}, nil
}

// Use looks for what the rules of a policy are about, unless that is known.
func (t *Tracker) Use(p *policy.Policy) {
	if t == nil {
		return
	}
	t.watcher.Sync() // what calls have done to links is known by the names
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
	<-listed
}

// lockUnder locks mu once the names are those of a policy.
func (t *Tracker) lockUnder(p *policy.Policy) {
	for t.mu.Lock(); t.base != p.Root(); t.mu.Lock() {
		t.mu.Unlock()
		t.Use(p)
	}
}

// Set returns what a policy keeps from a call, as far as it is known without waiting; nil =
// nothing. opened are the effects of the call that a person has said yes to.
func (t *Tracker) Set(p *policy.Policy, opened []policy.Effect) (*sandbox.MaskSet, error) {
	if t == nil || p == nil {
		return nil, nil
	}
	t.lockUnder(p)
	defer t.mu.Unlock()
	c, err := t.compile(p, opened)
	return c.set(), err
}

// Usual returns what is kept from a call of which nothing is known; nil = nothing, or it is
// not known yet.
func (t *Tracker) Usual() *sandbox.MaskSet {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c, err := t.compile(t.base, nil)
	if err != nil {
		return nil
	}
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
