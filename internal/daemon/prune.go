package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/quarantine"
)

// When a daemon prunes: a private one for a single call has ended by then.
const (
	firstPrune = time.Minute
	pruneEvery = time.Hour
)

// prune bounds what the daemon keeps besides the journal and the output of calls,
// from time to time until ctx ends.
func (d *Daemon) prune(ctx context.Context) {
	for next := time.NewTimer(firstPrune); ; next.Reset(pruneEvery) {
		select {
		case <-ctx.Done():
			next.Stop()
			return
		case <-next.C:
		}
		err := errors.Join(d.limitCaches(ctx), pruneKept(d.Config))
		if err != nil && ctx.Err() == nil {
			d.Log.Warn("cannot remove what is kept for too long", zap.Error(err))
		}
	}
}

// pruneKept removes what the configuration does not want kept any longer.
func pruneKept(cfg config.Config) error {
	_, err := quarantine.Prune(QuarantineDir(cfg), cfg.Limits.QuarantineKeep, cfg.Limits.QuarantineTotal)
	return errors.Join(err, pruneCaches(cfg))
}

// pruneCaches removes the stores of workspaces that are gone, those that were not used
// for long, and beyond the limit those that were used least lately. A store that is in
// use stays; its own daemon leaves it when it is too large (sandbox.Caches.Limit).
func pruneCaches(cfg config.Config) error {
	stores, err := sandbox.CacheStores(CacheDir(cfg))
	if err != nil {
		return err
	}
	slices.SortFunc(stores, func(a, b sandbox.CacheStore) int { return b.Used.Compare(a.Used) })
	kept := int64(0)
	var failed []error
	for _, s := range stores {
		old := time.Since(s.Used) > cfg.Limits.CachesKeep
		if !old && kept+s.Bytes <= cfg.Limits.CachesTotal && !workspaceGone(s.Path) {
			kept += s.Bytes
			continue
		}
		removed, err := sandbox.RemoveCacheStore(s.Path)
		if others, _ := filepath.Glob(strings.TrimSuffix(ownerOf(s.Path), ".of") + "*/lock"); removed && len(others) == 0 {
			os.Remove(ownerOf(s.Path))
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// CacheDir has the stores of all workspaces.
func CacheDir(cfg config.Config) string { return filepath.Join(cfg.StateDir, "caches") }

// second is what the name of a store has when it is not the only one of a workspace.
var second = regexp.MustCompile(`^(.*-[0-9a-f]{12})-[0-9]+$`)

// ownerOf is the file that names the workspace of a store.
func ownerOf(store string) string {
	if m := second.FindStringSubmatch(store); m != nil {
		store = m[1]
	}
	return store + ".of"
}

// workspaceGone reports whether the workspace of a store does not exist any more.
func workspaceGone(store string) bool {
	of, err := os.ReadFile(ownerOf(store))
	if err != nil {
		return false
	}
	_, err = os.Stat(strings.TrimSuffix(string(of), "\n"))
	return errors.Is(err, fs.ErrNotExist)
}

// readyStore notes whose a store is.
func readyStore(cfg config.Config) error {
	store := CacheStore(cfg)
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return err
	}
	return os.WriteFile(ownerOf(store), []byte(cfg.Workspace+"\n"), 0o600)
}

// QuarantineDir is the directory with copies of what was removed.
func QuarantineDir(cfg config.Config) string { return filepath.Join(cfg.StateDir, "quarantine") }
