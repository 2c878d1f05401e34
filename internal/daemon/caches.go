package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/sandbox"
)

// CacheStore is the directory for the changes of a workspace's calls to tool caches.
func CacheStore(cfg config.Config) string {
	sum := sha256.Sum256([]byte(cfg.Workspace))
	return filepath.Join(CacheDir(cfg), filepath.Base(cfg.Workspace)+"-"+hex.EncodeToString(sum[:6]))
}

// Caching reports whether calls have tool caches: confined ones that may write, if only with an escalation.
func Caching(cfg config.Config) bool {
	mode := max(cfg.Sandbox.Mode, min(cfg.Escalation.Mode, sandbox.WorkspaceWrite))
	return mode == sandbox.WorkspaceWrite && len(cfg.Caches) > 0
}

func (w *workspace) openCaches(ctx context.Context) (err error) {
	if !Caching(w.cfg) {
		return nil
	}
	if err := readyStore(w.cfg); err != nil {
		return fmt.Errorf("%w; sandbox.caches: [] does without", err)
	}
	if w.caches, err = sandbox.OpenCaches(ctx, CacheStore(w.cfg), w.cfg.Caches); err != nil {
		return fmt.Errorf("%w; sandbox.caches: [] does without", err)
	}
	w.cfg.Sandbox.Caches = w.caches
	return nil
}

// CachesUnavailable returns why a tool cache is missing although the sandbox has namespaces.
func CachesUnavailable(p sandbox.Profile, caches *sandbox.Caches) error {
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
