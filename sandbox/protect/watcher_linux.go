package protect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A Watcher watches the roots until Close. A nil Watcher protects nothing. It is safe for concurrent use.
type Watcher struct {
	options Options
	names   names
	inotify *os.File // for its poller; read by raw system calls, with mu held
	fd      int
	taken   uint64 // bytes of events read; guarded by mu
	looks   int    // directories to read before a call returns
	work    sync.WaitGroup
	follow  atomic.Pointer[func([]string)]
	ready   chan struct{} // closed when the roots have been read for the first time

	mu       sync.Mutex
	tree     tree
	here     here
	calls    uint64
	active   map[*Call]struct{}
	findings map[entry]*finding // what to remove
	unproven map[entry]struct{} // files that calls may have created, to check when a call ends
	existing []string           // see Call.Existing; nil = outdated
	links    map[string]link    // symbolic links on the way to them; zero = missing components
	ways     []string           // existing and links, sorted
	followed []string           // latest argument of follow
	behind   bool               // calls began before all events were handled
	more     bool               // there were more findings than are kept
	late     *lateCalls         // what ended calls may have left
	found    []Incident         // found of late, for the next End
	sweeping bool               // a goroutine runs sweep
	closed   bool
}

type entry struct {
	directory *directory
	name      string
}

// New starts watching. The first Begin waits until every directory has been read.
func New(o Options) (*Watcher, error) { return newWatcher(o, maxUnwatched) }

// maxUnwatched is how many unwatched directories are read before a call returns.
const maxUnwatched = 200_000

func newWatcher(o Options, looks int) (*Watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, errors.New("cannot watch the workspace for protected names: " + err.Error() + "; raise fs.inotify.max_user_instances (sysctl)")
	}
	w := newState(o)
	w.inotify, w.fd, w.looks = os.NewFile(uintptr(fd), "inotify"), fd, looks
	w.late = w.options.remembered()
	w.mu.Lock()
	// Ends with Close.
	w.work.Go(w.run)
	return w, nil
}

// newState returns a Watcher that does not watch yet.
func newState(o Options) *Watcher {
	return &Watcher{
		options: o, names: newNames(o.Names), tree: newTree(o.watches()),
		ready: make(chan struct{}), active: map[*Call]struct{}{}, findings: map[entry]*finding{}, unproven: map[entry]struct{}{},
	}
}

// Beside returns a Watcher like w for another directory and Observer, for a call that may also write there. It returns
// nil if w is nil. The caller must close it.
func (w *Watcher) Beside(root string, observer Observer) (*Watcher, error) {
	if w == nil {
		return nil, nil
	}
	o := w.options
	o.Roots, o.Observer = []string{root}, observer
	return New(o)
}

// run reads the roots, then handles events. It starts with mu held.
func (w *Watcher) run() {
	for _, root := range w.options.Roots {
		w.addRoot(root)
	}
	for !w.closed && w.search(piece) {
		w.yield()
	}
	if !w.closed {
		w.swept()
	}
	w.mu.Unlock()
	close(w.ready)
	w.notify()
	raw, err := w.inotify.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool {
		w.mu.Lock()
		w.pump(math.MaxInt)
		w.listMoved()
		done := w.closed
		w.mu.Unlock()
		if !done {
			w.notify()
		}
		return done
	})
}

// lock locks mu once the roots have been read. It returns an error if ctx ends first.
func (w *Watcher) lock(ctx context.Context) error {
	select {
	case <-w.ready:
		if w.mu.TryLock() { // almost always
			return nil
		}
	default:
	}
	locked := make(chan struct{})
	// Ends when mu is free.
	w.work.Go(func() {
		<-w.ready
		w.mu.Lock()
		select {
		case locked <- struct{}{}:
		case <-ctx.Done():
			w.mu.Unlock()
		}
	})
	select {
	case <-locked:
		return nil
	case <-ctx.Done():
		return searching(ctx)
	}
}

func searching(ctx context.Context) error {
	return fmt.Errorf("the workspace was still being searched for protected names: %w; make the call again", context.Cause(ctx))
}

// Close stops watching and waits until that has ended. Running calls continue unwatched.
func (w *Watcher) Close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.inotify.Close()
	w.work.Wait()
}

// Follow sets a function that receives what Call.Existing would return, once that is known and whenever it changes,
// from goroutines of the Watcher. f must not block for long. It may be set once, before Close.
func (w *Watcher) Follow(f func(existing []string)) {
	if w == nil {
		return
	}
	w.follow.Store(&f)
	// Ends once the directories have been read.
	w.work.Go(w.notify)
}

// notify calls follow if the result has changed. The caller does not hold mu.
func (w *Watcher) notify() {
	f := w.follow.Load()
	if f == nil {
		return
	}
	<-w.ready
	w.mu.Lock()
	now := w.look()
	changed := !w.closed && (w.followed == nil || !slices.Equal(now, w.followed))
	if changed {
		w.followed = now
	}
	w.mu.Unlock()
	if changed {
		(*f)(now)
	}
}

// Name returns the protected name that contains a canonical path, or the path to which one leads, or "". Missing
// names count like existing ones.
func (w *Watcher) Name(path string) string {
	if w == nil {
		return ""
	}
	if name := w.options.name(path); name != "" {
		return name
	}
	<-w.ready
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ledTo(path)
}

// look returns the protected paths that exist. The caller holds mu.
func (w *Watcher) look() []string {
	if w.existing != nil || w.closed {
		return w.existing
	}
	list := []string{}
	w.links = map[string]link{}
	for f := range w.tree.holders {
		if f.lost || len(w.options.Names) == 0 {
			continue
		}
		dir, known := f.path(), ""
		if w.opened(f) {
			known = dir // no part of it is a link
		}
		for _, name := range w.wanted(f, dir) {
			list = append(list, w.real(known, filepath.Join(dir, name), true))
		}
		for _, path := range w.elsewhere(f, dir) {
			list = append(list, w.real("", path, false))
		}
	}
	for c := range w.active { // what calls created there is not yet checked
		for path, was := range c.Links {
			if _, noted := w.links[path]; !noted {
				w.links[path] = was
			}
		}
	}
	slices.Sort(list)
	w.existing = slices.DeleteFunc(slices.Compact(list), func(path string) bool { return path == "" })
	w.ways = slices.Clone(w.existing)
	for path := range w.links {
		w.ways = append(w.ways, path)
	}
	slices.Sort(w.ways)
	return w.existing
}

// wanted returns the names in a directory that are protected, existing or not.
func (w *Watcher) wanted(f *directory, dir string) (list []string) {
	list = slices.Collect(maps.Keys(f.held))
	if f.isGit() {
		list = append(list, w.names.git...)
	}
	if w.names.file && f.gitFile {
		list = append(list, ".git")
	}
	if f.kind == unfinished {
		list = append(list, running(dir)...)
	}
	return list
}

func (w *Watcher) inRoot(path string) bool {
	return slices.ContainsFunc(w.options.Roots, func(root string) bool { _, in := inside(path, root); return in })
}
