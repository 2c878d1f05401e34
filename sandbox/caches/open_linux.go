package caches

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

// newCaches is the directory, inside of the sandbox, of the caches that the machine lacks.
const newCaches = "/run/toold/caches"

// maxStores limits how many daemons can use caches for one workspace at a time.
const maxStores = 16

// Open prepares the listed caches. Changes of calls are kept in store, which calls cannot access otherwise, or next
// to it while another Set uses it. An existing directory becomes an overlay (Linux 6.15). If that fails, calls see a
// private directory, and Problems has the reason. The caller must close the Set.
func Open(ctx context.Context, mount Mounter, store string, list []Cache) (*Set, error) {
	c := &Set{now: new(atomic.Pointer[generation]), mount: mount, dir: store, list: list}
	first, err := c.next(ctx, nil)
	if err != nil {
		return nil, err
	}
	c.now.Store(first)
	return c, nil
}

// Limit gives new calls fresh caches once the changes of calls exceed most bytes. Running calls keep the earlier
// directories, which RemoveStore removes later. It must not be called concurrently with itself.
func (c *Set) Limit(ctx context.Context, most int64) error {
	if c == nil {
		return nil
	}
	c.before.close()
	c.before = nil
	old := c.now.Load()
	bytes, unknown := size(old.store)
	if bytes <= most {
		return nil
	}
	next, err := c.next(ctx, old.dirs)
	if err != nil {
		return errors.Join(unknown, err)
	}
	c.before = old
	c.now.Store(next)
	return unknown
}

// next takes a store and prepares the caches in it. Caches in old that a variable names keep it, so that the
// environment of calls does not change.
func (c *Set) next(ctx context.Context, old []cacheDir) (*generation, error) {
	store, lock, err := lockStore(c.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot keep the tool caches of calls: %w", err)
	}
	g := &generation{store: store, lock: lock}
	var overlays []helper.Overlay
	for i, cache := range c.list {
		named := slices.ContainsFunc(old, func(f cacheDir) bool { return f.of == cache.Path && f.env != "" })
		o, dir, err := cache.prepare(store, i, named)
		if err != nil {
			g.close()
			return nil, fmt.Errorf("cannot keep what calls put into %s: %w", cache.Path, err)
		}
		if dir.path != "" {
			g.dirs = append(g.dirs, dir)
			overlays = append(overlays, o)
		}
	}
	if err := g.mount(ctx, c.mount, overlays); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// patience is how long to wait for calls of a killed daemon that still use a store.
const patience = 250 * time.Millisecond

// lockStore locks the first unused directory. Calls inherit the lock, so that it lasts until no call can write there,
// even without a daemon.
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

// lockDir creates and locks a directory. It returns EWOULDBLOCK if another process keeps it locked.
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

// prepare creates the directories of one cache. It creates none for a cache that does not exist and has no variable.
// A named cache is treated as missing.
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

func (g *generation) mount(ctx context.Context, mount Mounter, overlays []helper.Overlay) error {
	var list []helper.Overlay
	for _, o := range overlays {
		if o.Lower != "" {
			list = append(list, o)
		}
	}
	if len(list) == 0 {
		return nil
	}
	trees, reasons, err := mount(ctx, list)
	if err != nil {
		return err
	}
	next := 0
	for i, o := range overlays {
		if o.Lower == "" {
			continue
		}
		g.dirs[i].tree, g.dirs[i].reason = trees[next], reasons[next]
		if next++; g.dirs[i].tree != nil {
			// The kernel created it with mode 000, with which it cannot be removed.
			_ = os.Chmod(filepath.Join(o.Work, "work"), 0o700)
		}
	}
	return nil
}

// AddTo adds the caches to a specification and returns its descriptors. It skips caches in a writable directory.
func (c *Set) AddTo(spec *helper.Spec) (handed []*os.File) {
	if c == nil {
		return nil
	}
	g := c.now.Load()
	for _, f := range g.dirs {
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
	handed = append(handed, g.lock)
	spec.Handed = uint64(len(handed))
	return handed
}
