package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox/internal/helper"
)

// newCaches is where a view has the caches that the machine lacks.
const newCaches = "/run/toold/caches"

// maxStores bounds how many daemons can have caches for one workspace at a time.
const maxStores = 16

// OpenCaches prepares the caches of the list. Changes of calls are kept in store, which calls
// cannot reach otherwise, or beside it while another Caches uses store. An existing directory
// becomes an overlay (Linux 6.15); if that fails calls see a private one, and Problems has the
// reason. The caller closes the Caches.
func OpenCaches(ctx context.Context, store string, list []Cache) (*Caches, error) {
	set, err := openSet(ctx, store, list, nil)
	if err != nil {
		return nil, err
	}
	c := &Caches{now: new(atomic.Pointer[cacheSet]), dir: store, list: list}
	c.now.Store(set)
	return c, nil
}

// Limit resets the caches of new calls to the machine's once the changes of calls exceed most
// bytes. Running calls keep the earlier directory, which RemoveCacheStore removes later. One
// goroutine calls it periodically.
func (c *Caches) Limit(ctx context.Context, most int64) error {
	if c == nil {
		return nil
	}
	c.before.close()
	c.before = nil
	old := c.now.Load()
	if sizeBelow(old.store) <= most {
		return nil
	}
	set, err := openSet(ctx, c.dir, c.list, old.dirs)
	if err != nil {
		return err
	}
	c.before = old
	c.now.Store(set)
	return nil
}

// openSet takes a store and prepares the caches of the list in it. Caches that old ones named by a
// variable keep it: the environment of calls does not change.
func openSet(ctx context.Context, dir string, list []Cache, old []cacheDir) (*cacheSet, error) {
	store, lock, err := lockStore(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot keep the tool caches of calls: %w", err)
	}
	s := &cacheSet{store: store, lock: lock}
	var overlays []helper.Overlay
	for i, cache := range list {
		named := slices.ContainsFunc(old, func(f cacheDir) bool { return f.of == cache.Path && f.env != "" })
		o, dir, err := cache.prepare(store, i, named)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("cannot keep what calls put into %s: %w", cache.Path, err)
		}
		if dir.path != "" {
			s.dirs = append(s.dirs, dir)
			overlays = append(overlays, o)
		}
	}
	if err := s.mount(ctx, overlays); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// patience is how long the calls of a killed daemon may keep a store.
const patience = 250 * time.Millisecond

// lockStore locks the first unused directory. Calls inherit the lock: it is free when the last one
// that can write there is gone, even without a daemon.
func lockStore(dir string) (string, *os.File, error) {
	store, wait := dir, patience
	for i := range maxStores {
		lock, err := lockDir(store, wait)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return store, lock, err
		}
		store, wait = fmt.Sprintf("%s-%d", dir, i+2), 0
	}
	return "", nil, fmt.Errorf("%d daemons use %s already", maxStores, dir)
}

// lockDir creates and locks a directory; EWOULDBLOCK if another process has it.
func lockDir(dir string, wait time.Duration) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	for began := time.Now(); ; time.Sleep(patience / 25) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && touchLock(lock, path) {
			return lock, nil
		}
		lock.Close()
		if err != nil && (!errors.Is(err, unix.EWOULDBLOCK) || time.Since(began) >= wait) {
			return nil, fmt.Errorf("cannot lock %s: %w", dir, err)
		}
	}
}

// prepare creates the directories of one cache. A cache that does not exist and that no variable
// names yields none; a named one is treated as missing.
func (c Cache) prepare(store string, i int, named bool) (helper.Overlay, cacheDir, error) {
	sum := sha256.Sum256([]byte(c.Path))
	own := filepath.Join(store, strings.TrimLeft(filepath.Base(c.Path), ".")+"-"+hex.EncodeToString(sum[:6]))
	o := helper.Overlay{Lower: c.Path, Upper: filepath.Join(own, "changed"), Work: filepath.Join(own, "work")}
	f := cacheDir{of: c.Path, path: c.Path, from: filepath.Join(own, "private")}
	info, err := os.Lstat(c.Path)
	switch {
	case named || errors.Is(err, fs.ErrNotExist) && c.Env != "":
		o.Lower = ""
		f.path = fmt.Sprintf("%s/%d-%s", newCaches, i, filepath.Base(c.Path))
		f.env = c.Env + "=" + f.path
	case err != nil || !info.IsDir():
		return o, cacheDir{}, nil // nothing there
	}
	for _, dir := range []string{o.Upper, o.Work, f.from} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return o, f, err
		}
	}
	return o, f, nil
}

// mount makes a helper create the overlays. The helper ends at once: a mount lives as long as a
// descriptor of it, here in the daemon and the sandboxes of its calls.
func (s *cacheSet) mount(ctx context.Context, overlays []helper.Overlay) error {
	spec := helper.Spec{Namespaces: true}
	for _, o := range overlays {
		if o.Lower != "" {
			spec.Overlays = append(spec.Overlays, o)
		}
	}
	if len(spec.Overlays) == 0 {
		return nil
	}
	p, err := maker(spec)
	if errors.Is(err, ErrUnavailable) {
		for i, o := range overlays {
			if o.Lower != "" {
				s.dirs[i].reason = err
			}
		}
		return nil
	}
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, p.destroy)
	defer stop()
	err = s.receive(p, overlays)
	p.control.Close()
	return errors.Join(err, p.cmd.Wait())
}

// maker starts a helper that creates the overlays of a specification.
func maker(spec helper.Spec) (*Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	spec.User, spec.Group = uint64(os.Getuid()), uint64(os.Getgid())
	b, err := spec.Encode()
	if err != nil {
		return nil, err
	}
	var p Process
	theirs, err := p.connect()
	if err != nil {
		return nil, err
	}
	p.cmd = helperCommand(Command{Stdin: null, Stdout: null, Stderr: null}, spec, theirs)
	err = p.cmd.Start()
	theirs.Close()
	if err != nil {
		p.control.Close()
		return nil, unavailable("clone", err)
	}
	if err := p.sendSpec(b, nil); err != nil {
		p.destroy()
		p.control.Close()
		return nil, errors.Join(err, p.cmd.Wait())
	}
	return &p, nil
}

// receive receives the overlays in order, or the reason why there are none.
func (s *cacheSet) receive(p *Process, overlays []helper.Overlay) error {
	for i, o := range overlays {
		if o.Lower == "" {
			continue
		}
		event, files, err := p.nextFiles()
		if err != nil {
			return fmt.Errorf("cannot hear of the tool caches: %w", err)
		}
		f := &s.dirs[i]
		if event.Kind != helper.EventOverlay || len(files) != 1 {
			f.reason = fmt.Errorf("cannot %s: %w", event.Stage, failureOf(event))
			continue
		}
		f.tree = files[0]
		// The kernel created it with mode 000. It must be accessible to be removed.
		_ = os.Chmod(filepath.Join(o.Work, "work"), 0o700)
	}
	return nil
}

// addTo adds the caches to a specification, and returns its descriptors. Caches below a root are
// skipped: calls may write there anyway.
func (c *Caches) addTo(spec *helper.Spec) (handed []*os.File) {
	if c == nil {
		return nil
	}
	set := c.now.Load()
	for _, f := range set.dirs {
		if slices.ContainsFunc(spec.Roots, func(r helper.Root) bool { return paths.Within(f.path, r.Path) }) {
			continue
		}
		if f.tree != nil && !c.private {
			handed = append(handed, f.tree)
			spec.Caches = append(spec.Caches, helper.Cache{Path: f.path})
		} else {
			spec.Caches = append(spec.Caches, helper.Cache{Path: f.path, From: f.from})
		}
	}
	handed = append(handed, set.lock)
	spec.Handed = uint64(len(handed))
	return handed
}
