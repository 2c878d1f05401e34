package masks

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
)

// Most limits the masks of one call.
const Most = 1024

// ErrTooMany is returned if a call needs more masks.
var ErrTooMany = errors.New("too many files are kept from calls by rules")

type compiled struct {
	by     *policy.Policy
	masks  *sandbox.MaskSet  // nil = none
	is     map[string]string // identity of each hidden path
	lifted bool              // an approved effect removed a mask
	known  map[string]bool   // names with rules for any client
	open   map[string]bool   // those that a call can read and change
}

func (c *compiled) set() *sandbox.MaskSet {
	if c == nil {
		return nil
	}
	return c.masks
}

func (c *compiled) mask(path string) sandbox.Mask {
	for _, m := range c.masks.Hidden {
		if m.Path == path {
			return m
		}
	}
	return sandbox.Mask{Path: path}
}

// compile computes the masks of a call. The caller holds mu.
func (t *Tracker) compile(p *policy.Policy, opened []policy.Effect) (*compiled, error) {
	t.refresh()
	if t.anyone == t.base { // all clients have the same rules
		p = t.base
	}
	if len(opened) == 0 && t.last != nil && t.last.by == p {
		return t.last, nil
	}
	b := builder{t: t, by: p, opened: opened, hide: cut{}, fix: cut{}}
	for n := range t.names.all() {
		b.judge(n)
	}
	for _, n := range t.ghosts {
		if own := *n; own.judge(t, t.anyone) {
			b.judge(&own)
		}
	}
	c, err := b.build()
	if err == nil && len(opened) == 0 {
		t.last = c
	}
	return c, err
}

// current is compile for a call that begins: each mask is for the file that exists now, also in directories that are
// not watched. The caller holds mu.
func (t *Tracker) current(p *policy.Policy, opened []policy.Effect) (*compiled, error) {
	const rounds = 3
	for range rounds {
		set, err := t.compile(p, opened)
		if err != nil || !t.renew(set) {
			return set, err
		}
	}
	return nil, errors.New("files that rules keep from calls are replaced again and again; send the call again when that has ended")
}

// renew examines the masked files again, and reports whether one has changed. The caller holds mu.
func (t *Tracker) renew(set *compiled) (stale bool) {
	if set.masks == nil {
		return false
	}
	old := map[string]bool{}
	for _, m := range slices.Concat(set.masks.Hidden, set.masks.Fixed) {
		old[m.Path] = stateOf(m.Path).file != m.Is
		stale = stale || old[m.Path]
	}
	if !stale {
		return false
	}
	for n := range t.names.all() {
		if old[n.target] {
			t.look(n.path, true)
		}
	}
	for target, n := range t.ghosts {
		if _, err := t.lstat(target); errors.Is(err, syscall.EACCES) {
			continue
		}
		if n.is = stateOf(target).file; n.is == "" {
			delete(t.ghosts, target)
			t.store()
		}
	}
	t.last = nil
	return true
}

type builder struct {
	t            *Tracker
	by           *policy.Policy
	opened       []policy.Effect
	all          bool    // includes what calls created
	list         []*name // names, judged by the policy of the call
	lifted       bool
	hide, fix    cut
	reads, fixed []sandbox.Mask
}

// cut records, by directory, whether something below is masked and whether something is not.
type cut map[string]struct{ some, open bool }

// add records for the parents of a path whether it is masked.
func (c cut) add(path, root string, masked bool) {
	for dir := paths.Above(path); paths.Below(dir, root); dir = paths.Above(dir) {
		d, was := c[dir], c[dir]
		d.some, d.open = d.some || masked, d.open || !masked
		if d == was { // those above have the same entries
			return
		}
		c[dir] = d
	}
}

func (b *builder) judge(n *name) {
	own := *n
	if n.is == "" || b.by != b.t.anyone && !own.judge(b.t, b.by) {
		return
	}
	b.exempt(&own)
	b.add(&own)
	if !own.reads || n.dir {
		return
	}
	for _, path := range b.t.linked[n.is].paths {
		if path != n.target {
			other := own
			other.path, other.target = path, path
			b.add(&other)
		}
	}
}

// exempt clears the rules of a name that create no mask.
func (b *builder) exempt(n *name) {
	if n.made != (state{}) && !b.all {
		n.reads, n.writes = false, false
		return
	}
	readable := n.tracked.yes && n.reads && n.read.Action == policy.Ask
	writable := readable && n.write.Rule == n.read.Rule
	n.reads = n.reads && !readable && !b.lifts(n, policy.Read, n.read)
	n.writes = n.writes && !writable && !b.lifts(n, policy.Write, n.write)
}

func (b *builder) add(n *name) {
	if !n.dir {
		root := b.t.root(n.path)
		b.hide.add(n.path, root, n.reads)
		b.fix.add(n.path, root, n.writes || n.reads)
	}
	b.list = append(b.list, n)
}

// lifts reports whether an approved effect lifts a rule about a kind of access to a name. Approval to read keeps it
// read-only; approval to write has to remove the mask.
func (b *builder) lifts(n *name, kind policy.Kind, by policy.Block) bool {
	if by.Action != policy.Ask {
		return false
	}
	for _, e := range b.opened {
		if (kind == policy.Read || e.Kind == kind) && b.asked(e, n, by.Rule) {
			b.lifted = true
			return true
		}
	}
	return false
}

func (b *builder) asked(e policy.Effect, n *name, rule string) bool {
	is := n.path == e.Path || n.path == e.Canonical || n.target == e.Canonical
	return slices.ContainsFunc([]string{e.Path, e.Canonical}, func(path string) bool {
		asked, ok := b.by.Blocks(e.Kind, path, true)
		byRule := ok && asked.Action == policy.Ask && asked.Rule == rule
		inTree := e.Tree && asked.Tree && paths.Below(n.path, path)
		return byRule && (is || inTree)
	})
}

// build creates the masks. A directory whose contents are all masked becomes one mask.
func (b *builder) build() (*compiled, error) {
	slices.SortFunc(b.list, func(x, y *name) int { return inTree(x.target, y.target) })
	c := &compiled{by: b.by, is: map[string]string{}, known: map[string]bool{}, open: map[string]bool{}}
	hidden, fixed := "", ""          // the latest ones; what they cover follows
	for n := range b.t.names.all() { // including names with rules for other clients
		if n.is != "" {
			c.known[n.path], c.open[n.path] = true, n.made != (state{})
		}
	}
	for _, n := range b.list {
		root := b.t.root(n.target)
		c.known[n.path] = true
		switch {
		case covers(hidden, n.target, root):
		case n.reads && b.whole(n, b.hide, n.read):
			hidden, c.is[n.target] = n.target, n.is
			b.reads = append(b.reads, mask(n, n.read))
		case covers(fixed, n.target, root):
		case n.writes && b.whole(n, b.fix, n.write):
			fixed = n.target
			b.fixed = append(b.fixed, mask(n, n.write))
		case !n.dir && !n.reads:
			c.open[n.path] = true
		}
	}
	c.lifted = b.lifted
	if !b.merge(c) {
		return nil, b.tooMany()
	}
	if len(b.reads)+len(b.fixed) > 0 {
		c.masks = &sandbox.MaskSet{Hidden: b.reads, Fixed: b.fixed}
	}
	return c, nil
}

// whole reports whether a mask on a name covers exactly what the rule matches.
func (b *builder) whole(n *name, of cut, by policy.Block) bool {
	if !n.dir {
		return true
	}
	if n.path != n.target {
		return by.Tree
	}
	in := of[n.path]
	return by.Tree && in.some && !in.open
}

func covers(mask, path, root string) bool { return paths.Within(path, mask) && paths.Below(mask, root) }

// inTree sorts paths so that what is below a directory follows it directly.
func inTree(x, y string) int {
	for i := range min(len(x), len(y)) {
		switch a, b := x[i], y[i]; {
		case a == b:
		case a == '/':
			return -1
		case b == '/':
			return 1
		default:
			return cmp.Compare(a, b)
		}
	}
	return cmp.Compare(len(x), len(y))
}

func mask(n *name, by policy.Block) sandbox.Mask {
	return sandbox.Mask{Path: n.target, Is: n.is, Rule: by.Rule, Reason: by.Reason, Ask: by.Action == policy.Ask}
}

func (b *builder) tooMany() error {
	count := map[string]int{}
	for _, m := range slices.Concat(b.reads, b.fixed) {
		count[m.Rule]++
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(count)), func(x, y string) int { return cmp.Compare(count[x], count[y]) })
	return fmt.Errorf("%w: %d here, %d of them by rule %s, and a call may have %d masks; no directory that holds them can be kept from calls as a whole; let the pattern be a directory with /**, leave some out with except, or remove them",
		ErrTooMany, len(b.reads)+len(b.fixed), count[most], most, Most)
}
