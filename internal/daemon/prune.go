package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/launch"
	"github.com/toold/toold/sandbox/quarantine"
	"github.com/toold/toold/tools/spool"
)

// A private daemon ends before its first prune.
const (
	firstPrune      = time.Minute
	pruneEvery      = 5 * time.Minute
	pruneFullEvery  = time.Minute // within which a call that has taken caches has begun, or never will
	sizeCachesEvery = time.Hour   // for tool caches, since it stats each file
)

// pruner limits the total size of a state directory: journal, output, quarantine and changes to tool caches.
type pruner struct {
	cfg     config.Config
	journal *journal.Journal
	grown   atomic.Int64  // bytes of output and journal since the last prune
	wake    chan struct{} // capacity 1: grown is large

	stores []caches.Store // remaining stores, with their sizes at the time sized
	sized  time.Time
	full   bool // the limit is exceeded, so no call is accepted
}

// pause returns when to prune again.
func (k *pruner) pause() time.Duration {
	if k.full {
		return pruneFullEvery
	}
	return pruneEvery
}

// resize reports whether to measure the tool caches, and the size beyond which those in use are replaced.
func (k *pruner) resize() (most int64, due bool) {
	if k.full { // all caches together may be the reason
		return k.cfg.Limits.StateBytes / 64, time.Since(k.sized) >= pruneFullEvery
	}
	return k.cfg.Limits.StateBytes / 2, time.Since(k.sized) > sizeCachesEvery
}

func newPruner(cfg config.Config, j *journal.Journal) *pruner {
	k := &pruner{cfg: cfg, journal: j, wake: make(chan struct{}, 1)}
	j.Bound(cfg.Limits.StateBytes, k.countBytes)
	return k
}

func (k *pruner) countBytes(bytes int64) {
	if k.grown.Add(bytes) > k.cfg.Limits.StateBytes/64 {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

func (d *Daemon) prune(ctx context.Context) {
	for next := time.After(firstPrune); ; next = time.After(d.pruner.pause()) {
		select {
		case <-ctx.Done():
			return
		case <-next:
		case <-d.pruner.wake:
		}
		var err error
		if most, due := d.pruner.resize(); due {
			err = d.limitCaches(ctx, most)
		}
		err = errors.Join(err, d.pruner.prune(ctx))
		if err != nil && ctx.Err() == nil {
			d.Log.Warn("cannot remove what is kept for too long", zap.Error(err))
		}
	}
}

type prunable struct {
	bytes   int64
	used    time.Time
	keep    time.Duration // maximum age
	remove  func() (bool, error)
	journal bool // part of the journal, which is removed last
	cache   bool
	open    bool // calls use it
}

// prune removes what is too old, then the oldest items beyond the limit. The journal is last, so that much output
// does not displace it. Output and caches of open calls are kept; no part of the journal is removed to make room for
// them, nor other output to make room for caches. While the limit remains exceeded, new calls are refused.
func (k *pruner) prune(ctx context.Context) error {
	k.grown.Store(0)
	list, total, err := k.prunables(ctx)
	slices.SortStableFunc(list, func(a, b prunable) int {
		switch {
		case a.journal == b.journal:
			return a.used.Compare(b.used)
		case a.journal:
			return 1
		}
		return -1
	})
	limit, open, inUse := k.cfg.Limits.StateBytes, int64(0), int64(0)
	for _, item := range list {
		if item.cache && item.open {
			inUse += item.bytes
		}
	}
	for _, item := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if item.open {
			open += item.bytes
			continue
		}
		over := total-inUse > limit
		if item.journal {
			over = total-open > limit
		}
		if !over && time.Since(item.used) <= item.keep {
			continue
		}
		removed, failed := item.remove()
		err = errors.Join(err, failed)
		switch {
		case removed:
			total -= item.bytes
		case item.cache: // nor does one that cannot be removed displace others
			open, inUse = open+item.bytes, inUse+item.bytes
		}
	}
	var full error
	if k.full = total > limit; k.full {
		full = fmt.Errorf("toold keeps %d bytes, at most %d may be (limits.state_bytes), and nothing more can be removed while %s: raise the limit, or wait", total, limit, k.reason())
	}
	k.journal.Refuse(full)
	return errors.Join(err, full)
}

func (k *pruner) reason() string {
	if k.cfg.Store == "" {
		return "calls use it"
	}
	return "calls use it or the team store lacks it (see toold doctor)"
}

func (k *pruner) prunables(ctx context.Context) (list []prunable, total int64, err error) {
	var failed []error
	for _, of := range []func(context.Context) ([]prunable, error){k.output, k.quarantine, k.caches, k.parts} {
		part, err := of(ctx)
		for _, item := range part {
			total += item.bytes
		}
		list, failed = append(list, part...), append(failed, err)
	}
	return list, total, errors.Join(failed...)
}

// output lists the output before it reads the open calls, so that every listed call is open or has ended.
func (k *pruner) output(context.Context) (list []prunable, err error) {
	spools, err := spool.List(spoolDir(k.cfg))
	if err != nil || len(spools) == 0 {
		return nil, err
	}
	open, err := k.journal.OpenCalls()
	if err != nil {
		return nil, err
	}
	for _, s := range spools {
		key, err := strconv.ParseInt(s.Name, 10, 64)
		if err != nil {
			continue // not toold's
		}
		list = append(list, prunable{bytes: s.Bytes, used: s.Changed, keep: k.cfg.Limits.SpoolKeep, open: open[journal.Key(key)], remove: func() (bool, error) {
			err := spool.Remove(filepath.Join(spoolDir(k.cfg), s.Name))
			return err == nil, err
		}})
	}
	return list, nil
}

func (k *pruner) quarantine(context.Context) (list []prunable, err error) {
	items, err := quarantine.Items(k.cfg.QuarantineDir())
	for _, i := range items {
		list = append(list, prunable{bytes: i.Bytes, used: i.At, keep: k.cfg.Limits.QuarantineKeep, remove: func() (bool, error) {
			err := quarantine.Discard(k.cfg.QuarantineDir(), i.ID)
			return err == nil, err
		}})
	}
	return list, err
}

// caches lists the stores of tool caches. Those of removed workspaces expire at once. A store in use is kept; its
// daemon replaces one that is too large (caches.Set.Limit).
func (k *pruner) caches(context.Context) (list []prunable, err error) {
	if _, due := k.resize(); due {
		if k.stores, err = caches.Stores(k.cfg.CacheDir()); err == nil {
			k.sized = time.Now()
		}
	}
	for _, s := range k.stores {
		keep := k.cfg.Limits.CachesKeep
		if workspaceGone(s.Path) {
			keep = 0
		}
		list = append(list, prunable{bytes: s.Bytes, used: s.Used, keep: keep, cache: true, open: s.InUse(), remove: func() (bool, error) { return k.removeStore(s) }})
	}
	return list, err
}

func (k *pruner) removeStore(s caches.Store) (bool, error) {
	removed, err := caches.RemoveStore(s.Path)
	if others, _ := filepath.Glob(strings.TrimSuffix(ownerOf(s.Path), ".of") + "*/lock"); removed && len(others) == 0 {
		os.Remove(ownerOf(s.Path))
	}
	if removed {
		k.stores = slices.DeleteFunc(slices.Clone(k.stores), func(o caches.Store) bool { return o.Path == s.Path })
	}
	return removed, err
}

// parts lists the parts of the journal, and its other files as one item that is kept.
func (k *pruner) parts(ctx context.Context) (list []prunable, err error) {
	parts, err := k.journal.Parts()
	rest := treeSize(filepath.Join(k.cfg.StateDir, "journal"))
	keep := k.cfg.Limits.RecordKeep
	for _, p := range parts {
		rest -= p.Bytes
		if time.Since(p.Ended) > keep {
			old, failed := k.journal.Older(ctx, p, keep)
			if err = errors.Join(err, failed); !old {
				keep = math.MaxInt64 // nor are later ones
			}
		}
		list = append(list, prunable{bytes: p.Bytes, used: p.Ended, keep: keep, journal: true, remove: func() (bool, error) { return k.journal.Remove(p) }})
	}
	other := prunable{bytes: max(0, rest), used: time.Now(), keep: time.Hour, remove: func() (bool, error) { return false, nil }}
	return append(list, other), err
}

// KeptBytes returns the size in bytes that limits.state_bytes limits.
func KeptBytes(cfg config.Config) (total int64, err error) {
	for _, dir := range []string{filepath.Join(cfg.StateDir, "journal"), spoolDir(cfg), cfg.QuarantineDir()} {
		total += treeSize(dir)
	}
	stores, err := caches.Stores(cfg.CacheDir())
	for _, s := range stores {
		total += s.Bytes
	}
	return total, err
}

// treeSize returns the total size in bytes of the files below a directory. Missing files count as 0.
func treeSize(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

func spoolDir(cfg config.Config) string { return filepath.Join(cfg.StateDir, "spool") }

// OutputSum returns the checksum of the kept output of a call, or "" if none is kept.
func OutputSum(cfg config.Config, call journal.Key) (string, error) {
	return spool.Sum(filepath.Join(spoolDir(cfg), strconv.FormatInt(int64(call), 10)))
}

// furtherStore matches the names of a workspace's additional stores.
var furtherStore = lazyregexp.New(`^(.*-[0-9a-f]{12})-[0-9]+$`)

// ownerOf returns the path of the file that names the workspace of a store.
func ownerOf(store string) string {
	if m := furtherStore().FindStringSubmatch(store); m != nil {
		store = m[1]
	}
	return store + ".of"
}

func workspaceGone(store string) bool {
	of, err := os.ReadFile(ownerOf(store))
	if err != nil {
		return false
	}
	_, err = os.Stat(strings.TrimSuffix(string(of), "\n"))
	return errors.Is(err, fs.ErrNotExist)
}

func recordOwner(cfg config.Config) error {
	store := cfg.CacheStore()
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return err
	}
	return os.WriteFile(ownerOf(store), []byte(cfg.Workspace+"\n"), 0o600)
}

func (w *workspace) openCaches(ctx context.Context) (err error) {
	if !w.cfg.Caching() {
		return nil
	}
	if err := recordOwner(w.cfg); err != nil {
		return fmt.Errorf("the state directory cannot be written: %w; toold doctor says how to go on", err)
	}
	if w.caches, err = caches.Open(ctx, launch.Overlays, w.cfg.CacheStore(), w.cfg.Caches); err != nil {
		return fmt.Errorf("%w; sandbox.caches: [] does without", err)
	}
	w.cfg.Sandbox.Caches = w.caches
	return nil
}

// CachesUnavailable returns why a tool cache is missing although the sandbox has namespaces, or nil.
func CachesUnavailable(p sandbox.Profile, set *caches.Set) error {
	if p.Tier != sandbox.TierA && p.Tier != sandbox.TierB {
		return nil
	}
	for path, why := range set.Problems() {
		if errors.Is(why, sandbox.ErrUnavailable) {
			return fmt.Errorf("cannot show calls the tool cache %s: %w", path, why)
		}
	}
	return nil
}
