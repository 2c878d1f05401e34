package guard

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Guard watches the roots for as long as it lives. A nil Guard guards nothing.
// Its methods may be called concurrently.
type Guard struct {
	options Options
	names   names
	inotify *os.File // kept for its poller; read by raw system calls, with mu held
	fd      int
	work    sync.WaitGroup
	follow  atomic.Pointer[func([]string)]

	mu        sync.Mutex
	tree      tree
	active    map[*Call]struct{}
	incidents []Incident         // of the active calls
	unproven  map[string]*folder // files that calls may have made, judged by content when one ends
	existing  []string           // what stands in Existing; nil = to be looked for
	links     map[string]link    // on the ways to them: symbolic links, and what is missing (zero)
	told      []string           // what follow was told last
	late      *unswept           // what calls may have left that have ended; nil = nothing
	found     []Incident         // of late, for the next call's return
	sweeping  bool               // a goroutine looks for them
	lost      bool               // the kernel dropped news: everything must be looked at
	closed    bool
}

// New begins to watch. The first Begin waits until every folder has been seen.
func New(o Options) (*Guard, error) { return newGuard(o, mostDark) }

// newGuard makes a Guard that may look through so many folders before a call returns.
func newGuard(o Options, looks int) (*Guard, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, errors.New("cannot watch the workspace for protected names: " + err.Error() + "; raise fs.inotify.max_user_instances (sysctl)")
	}
	g := &Guard{
		options: o, names: sortNames(o.Names), inotify: os.NewFile(uintptr(fd), "inotify"), fd: fd,
		active: map[*Call]struct{}{}, unproven: map[string]*folder{},
	}
	g.tree.watch, g.tree.most, g.tree.looks = map[int32]*folder{}, o.watches(), looks
	g.late = g.options.remembered()
	g.mu.Lock()
	// Ends with Close.
	g.work.Go(g.run)
	return g, nil
}

// run looks through the roots, and then takes the news as they come. It begins
// with mu held.
func (g *Guard) run() {
	for _, root := range g.options.Roots {
		g.addRoot(root)
	}
	g.swept()
	g.mu.Unlock()
	g.tell()
	raw, err := g.inotify.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool {
		g.mu.Lock()
		done := g.closed
		if !done {
			g.pump()
		}
		g.mu.Unlock()
		if !done {
			g.tell()
		}
		return done
	})
}

// Close ends the watch and waits for its end. Calls that run go on unguarded.
func (g *Guard) Close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.inotify.Close()
	g.work.Wait()
}

// Follow has f called with what Call.Existing would be, as soon as that is known
// and whenever it changes, from goroutines of the guard. f must not block for long.
// There is one follower, set once and before Close.
func (g *Guard) Follow(f func(existing []string)) {
	if g == nil {
		return
	}
	g.follow.Store(&f)
	// Ends once the first look at the folders has.
	g.work.Go(g.tell)
}

// tell tells the follower what has changed.
func (g *Guard) tell() {
	f := g.follow.Load()
	if f == nil {
		return
	}
	g.mu.Lock()
	now := g.look()
	changed := !g.closed && (g.told == nil || !slices.Equal(now, g.told))
	if changed {
		g.told = now
	}
	g.mu.Unlock()
	if changed {
		(*f)(now)
	}
}

// Name is the protected name that a canonical path is or lies in, or the path to which
// one leads; "" when it is none. What is missing is as protected as what is there.
func (g *Guard) Name(path string) string {
	if g == nil {
		return ""
	}
	if name := g.options.name(path); name != "" {
		return name
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ledTo(path)
}

// Blind tells why not every folder is watched, for people; "" when all are. Such
// folders are looked through at the end of each call instead. unseen tells that they
// were too many for that: the rest is looked through when no call runs, or by the next
// Guard of these roots.
func (g *Guard) Blind() (why string, unseen bool) {
	if g == nil {
		return "", false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tree.blind(), len(g.tree.unseen) > 0
}

// A Call is the time in which a call may run. Begin it before anything of the
// call runs, and End it when nothing does any more.
type Call struct {
	guard    *Guard
	existing []string
	first    int // incidents before it
	reach
}

// Begin takes what is there now for what has to stay. granted are paths that this
// call may change all the same, with what is in them; those that no name protects
// do not count.
func (g *Guard) Begin(granted []string) *Call {
	c := &Call{guard: g, reach: reach{Since: stamp()}}
	if g == nil {
		return c
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pump()
	if len(g.active) == 0 { // they were found when no call ran
		g.found, g.incidents = append(g.found, g.incidents...), nil
	}
	c.existing = []string{}
	c.Covered, c.Links = map[string]bool{}, map[string]link{}
	c.Granted = slices.DeleteFunc(slices.Clone(granted), func(path string) bool { return g.options.name(path) == "" && g.ledTo(path) == "" })
	for _, path := range g.look() {
		if !c.may(path) {
			c.existing = append(c.existing, path)
			c.Covered[path] = true
		}
	}
	maps.Copy(c.Links, g.links)
	c.first = len(g.incidents)
	g.active[c] = struct{}{}
	return c
}

// Existing lists what is protected and there, canonical and sorted. The slice must
// not be changed.
func (c *Call) Existing() []string { return c.existing }

// End takes away what has appeared and returns what did while the call ran, also
// when another call that ran at that time may have done it, or one before, whose
// folders were too many to be looked through at its end. It is called once. A nil
// Call is none.
func (c *Call) End() []Incident {
	if c == nil || c.guard == nil {
		return nil
	}
	g := c.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.pump()
		g.tree.unseen = slices.Collect(maps.Keys(g.tree.dark))
		g.lookAgain(g.tree.looks)
		g.judgeUnproven(len(g.active) == 1)
	}
	found := append(g.found, g.incidents[c.first:]...)
	g.found = nil
	delete(g.active, c)
	if len(g.active) == 0 {
		g.incidents = nil
	}
	if len(g.tree.unseen) > 0 {
		g.leave(c)
	} else {
		g.swept()
	}
	return found
}

// settle makes known what was fresh: nobody runs who could have made it, and nothing
// is left to be looked at of those who did.
func (g *Guard) settle() {
	for _, f := range g.tree.fresh {
		f.fresh = false
	}
	for f := range g.tree.holders {
		f.obeyed = f.obeyed || f.kind == plain && !f.bare
	}
	g.tree.fresh, g.existing = nil, nil
	clear(g.unproven)
}

// look finds what is protected and there.
func (g *Guard) look() []string {
	if g.existing != nil || g.closed {
		return g.existing
	}
	g.existing, g.links = []string{}, map[string]link{}
	for f := range g.tree.holders {
		dir := f.path()
		for _, name := range g.wanted(f) {
			g.existing = append(g.existing, g.real(filepath.Join(dir, name), true))
		}
		for _, path := range g.elsewhere(f, dir) {
			g.existing = append(g.existing, g.real(path, false))
		}
	}
	slices.Sort(g.existing)
	g.existing = slices.DeleteFunc(slices.Compact(g.existing), func(path string) bool { return path == "" })
	return g.existing
}

// wanted are the names to protect in a folder.
func (g *Guard) wanted(f *folder) []string {
	var list []string
	if f.obeyed {
		list = g.names.plain
	}
	if f.kind.isGit() || f.bare {
		list = append(list[:len(list):len(list)], g.names.git...)
	}
	if g.names.file && f.gitFile {
		list = append(list[:len(list):len(list)], ".git")
	}
	return list
}

func (g *Guard) inRoot(path string) bool {
	return slices.ContainsFunc(g.options.Roots, func(root string) bool {
		return strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
	})
}

// blames reports whether a call may have made what is at path without leave:
// whether one runs that could have. What is there when a call begins it cannot
// change.
func (g *Guard) blames(path string) bool {
	guilty := false
	for c := range g.active {
		if c.may(path) {
			return false
		}
		guilty = guilty || c.could(path)
	}
	return guilty || g.late.blames(path)
}

// uncover notes that a path has been replaced, from outside where it was covered:
// the kernel takes a mount away with what it covers. Calls can change it now.
func (g *Guard) uncover(path string) {
	for c := range g.active {
		delete(c.Covered, path)
	}
}

// mostIncidents is how many are kept and told while calls run. A call that makes
// more, over and over, gains nothing but work: they are removed.
const mostIncidents = 200

// accuse takes away what appeared at path, and records it.
func (g *Guard) accuse(path, why string) {
	g.existing = nil
	if slices.ContainsFunc(g.incidents, func(i Incident) bool { return i.Path == path && i.Kept == "" }) {
		return // it is still there
	}
	i := Incident{Path: path, Why: why}
	if len(g.incidents) >= mostIncidents {
		if !g.options.Report {
			_ = remove(path)
		}
		return
	}
	if !g.options.Report {
		i.Kept, i.Err = take(path, g.options.Quarantine)
		if errors.Is(i.Err, syscall.ENOENT) {
			return // it is gone already
		}
	}
	g.incidents = append(g.incidents, i)
}
