package masks

import (
	"context"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/nofollow"
	"github.com/toold/toold/sandbox/protect"
)

// A Call is the period in which a call runs under masks. A nil Call has no masks.
type Call struct {
	tracker  *Tracker
	set      *compiled
	makes    bool             // new names count as created by the call; guarded by Tracker.mu
	since    int64            // when the call began, in nanoseconds
	began    map[string]state // initial states of readable names with rules, and of links on the way to names with rules
	violated func()
	replaced []sandbox.Mask // guarded by Tracker.mu
	fresh    int            // number of new names; guarded by Tracker.mu
}

// Begin computes the masks of a call. opened are the effects that a person approved. makes means that new names count
// as created by the call. violated is called, possibly often, when a masked file was replaced: the call must then be
// ended at once. It must not block. Begin returns an error if ctx ends first.
func (t *Tracker) Begin(ctx context.Context, p *policy.Policy, opened []policy.Effect, makes bool, violated func()) (*Call, error) {
	if t == nil || p == nil {
		return nil, nil
	}
	if err := t.Use(ctx, p); err != nil {
		return nil, err
	}
	if err := t.lockUnder(ctx, p); err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	set, err := t.current(p, opened)
	if err != nil {
		return nil, err
	}
	c := &Call{tracker: t, set: set, makes: makes && !set.lifted, violated: violated, began: map[string]state{}, since: nofollow.Stamp().UnixNano()}
	for path, open := range set.open {
		if open {
			c.began[path] = stateOf(path)
		}
	}
	for n := range t.names.all() {
		if n.detours() {
			c.began[n.path] = stateOf(n.path)
		}
	}
	for other := range t.active { // no other call has created what this one can read
		other.makes = other.makes && !set.lifted
		c.makes = c.makes && !other.set.lifted
	}
	t.active[c], t.begun = struct{}{}, true
	return c, nil
}

// Masks returns the masks of the call; nil = none.
func (c *Call) Masks() *sandbox.MaskSet {
	if c == nil {
		return nil
	}
	return c.set.masks
}

// End returns the masks that were replaced, and what the call left under names with rules, which it removes.
func (c *Call) End() (replaced []sandbox.Mask, removed []protect.Incident) {
	if c == nil {
		return nil, nil
	}
	t := c.tracker
	_ = t.watcher.Sync(context.Background()) // the context never ends
	t.mu.Lock()
	t.relink()
	remove := t.plantedBy(c)
	if len(remove) > 0 {
		t.mu.Unlock()
		removed = t.watcher.Remove(remove)
		_ = t.watcher.Sync(context.Background())
		t.mu.Lock()
	}
	defer t.mu.Unlock()
	delete(t.active, c)
	t.readIndexes(false)
	if c.makes && c.replaced == nil {
		t.take(c)
	}
	return c.replaced, removed
}

// take records what a call has created, or changed among the files that it could read. The caller holds mu.
func (t *Tracker) take(c *Call) {
	for n := range t.names.all() {
		now := stateOf(n.path)
		isFile, could := !n.dir && !n.link, c.set.open[n.path] || c.made(n, now)
		if !isFile || !could || c.isMasked(n.path) {
			continue
		}
		if was, open := c.began[n.path]; open && was == now && n.made == (state{}) {
			continue // readable for another reason
		}
		if n.made != now {
			n.made, t.last = now, nil
		}
	}
}

// made reports whether the call may have created a name.
func (c *Call) made(n *name, now state) bool { return !c.set.known[n.path] && c.brought(n, now) }

// brought reports whether the call may have created or replaced a name that has changed. A name that was found by
// listing its directory, for example under another policy, existed before, unless it or the directory was created
// since the call began.
func (c *Call) brought(n *name, now state) bool {
	return n.came || now.born >= c.since || stateOf(paths.Above(n.path)).born >= c.since
}

func (c *Call) isMasked(path string) bool {
	for root := c.tracker.root(path); paths.Within(path, root); path = paths.Above(path) {
		if c.set.is[path] != "" {
			return true
		}
	}
	return false
}

// replaced ends the calls in which the mask is for another file than the one that now has this name. The caller holds
// mu.
func (t *Tracker) replaced(n *name) {
	for c := range t.active {
		was, masked := c.set.is[n.target]
		if !masked || was == n.is || c.replaced != nil {
			continue
		}
		c.replaced = []sandbox.Mask{c.set.mask(n.target)}
		c.violated()
	}
}
