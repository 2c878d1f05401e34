package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/sandbox"
)

// cacheStore is where a workspace's calls leave what they change in tool caches.
// Each workspace has its own: what the code of one builds does not reach another.
func cacheStore(cfg config.Config) string {
	sum := sha256.Sum256([]byte(cfg.Workspace))
	return filepath.Join(cacheFolder(cfg), filepath.Base(cfg.Workspace)+"-"+hex.EncodeToString(sum[:6]))
}

// caching tells whether calls have tool caches: where they may write at all and are
// confined, or where a person may let one do so.
func caching(cfg config.Config) bool {
	mode := max(cfg.Sandbox.Mode, min(cfg.Widen.Mode, sandbox.WorkspaceWrite))
	return mode == sandbox.WorkspaceWrite && len(cfg.Caches) > 0
}

// openCaches makes the tool caches of calls ready.
func (u *unit) openCaches(ctx context.Context) (err error) {
	if !caching(u.cfg) {
		return nil
	}
	if err := readyStore(u.cfg); err != nil {
		return &exitError{exitFailed, fmt.Errorf("%w; sandbox.caches: [] does without", err)}
	}
	if u.caches, err = sandbox.OpenCaches(ctx, cacheStore(u.cfg), u.cfg.Caches); err != nil {
		return &exitError{exitFailed, fmt.Errorf("%w; sandbox.caches: [] does without", err)}
	}
	u.cfg.Sandbox.Caches = u.caches
	return nil
}

// withoutNamespace tells why the caches are not what they could be, where toold makes
// namespaces for everything but for them.
func withoutNamespace(p sandbox.Profile, caches *sandbox.Caches) error {
	if p.Tier != sandbox.TierA && p.Tier != sandbox.TierB {
		return nil
	}
	for path, why := range caches.Problems() {
		if errors.Is(why, sandbox.ErrUnavailable) {
			return fmt.Errorf("cannot show calls the tool cache %s: %w", path, why)
		}
	}
	return nil
}

// cacheFinding tries the tool caches in a store of its own.
func cacheFinding(ctx context.Context, cfg config.Config) finding {
	f := finding{Name: "tool caches", OK: true}
	if cfg.Sandbox.Tier == sandbox.TierC {
		f.Is = "none in tier C"
		return f
	}
	if !caching(cfg) {
		f.Is = "none: sandbox.caches is empty, or no call may have the profile workspace-write"
		return f
	}
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return finding{Name: f.Name, Is: err.Error(), Mend: "choose another state folder with --state-dir"}
	}
	store, err := os.MkdirTemp(cfg.StateDir, "doctor-caches-")
	if err != nil {
		return finding{Name: f.Name, Is: err.Error(), Mend: "choose another state folder with --state-dir"}
	}
	defer os.RemoveAll(store)
	caches, err := sandbox.OpenCaches(ctx, store, cfg.Caches)
	if err != nil {
		return finding{Name: f.Name, Is: err.Error(), Mend: "correct what is named, or do without: sandbox.caches: []"}
	}
	defer caches.Close()
	if withoutNamespace(cfg.Sandbox, caches) != nil {
		return finding{Name: f.Name, Is: "none without the sandbox"}
	}
	f.Is = "what calls change goes to " + cacheStore(cfg)
	if stores, err := sandbox.CacheStores(cacheFolder(cfg)); err == nil && len(stores) > 0 {
		total := int64(0)
		for _, s := range stores {
			total += s.Bytes
		}
		f.Is += fmt.Sprintf("; all changes of calls to tool caches take %s of at most %s", size(total), size(cfg.Limits.CachesTotal))
	}
	if cfg.Sandbox.Tier == sandbox.TierBwrap {
		f.Is += "; calls see nothing else there in tier A-bwrap"
	}
	problems := caches.Problems()
	for _, path := range slices.Sorted(maps.Keys(problems)) {
		f.Is += fmt.Sprintf("; of %s calls see only what they have put there: %v", path, problems[path])
	}
	if env := caches.Env(); len(env) > 0 {
		f.Is += "; not on this machine, so kept by variable: " + strings.Join(env, " ")
	}
	return f
}
