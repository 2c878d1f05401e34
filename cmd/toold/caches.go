package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/sandbox"
)

func cacheFinding(ctx context.Context, cfg config.Config) finding {
	f := finding{Name: "tool caches", OK: true}
	if cfg.Sandbox.Tier == sandbox.TierC {
		f.Is = "none in tier C"
		return f
	}
	if !daemon.Caching(cfg) {
		f.Is = "none: sandbox.caches is empty, or no call may have the profile workspace-write"
		return f
	}
	err := os.MkdirAll(cfg.StateDir, 0o700)
	var store string
	if err == nil {
		store, err = os.MkdirTemp(cfg.StateDir, "doctor-caches-")
	}
	if err != nil {
		return finding{Name: f.Name, Is: err.Error(), Fix: "choose another state directory with --state-dir"}
	}
	defer os.RemoveAll(store)
	caches, err := sandbox.OpenCaches(ctx, store, cfg.Caches)
	if err != nil {
		return finding{Name: f.Name, Is: err.Error(), Fix: "correct what is named, or do without: sandbox.caches: []"}
	}
	defer caches.Close()
	if daemon.CachesUnavailable(cfg.Sandbox, caches) != nil {
		return finding{Name: f.Name, Is: "none without the sandbox"}
	}
	f.Is = "what calls change goes to " + daemon.CacheStore(cfg)
	if stores, err := sandbox.CacheStores(daemon.CacheDir(cfg)); err == nil && len(stores) > 0 {
		total := int64(0)
		for _, s := range stores {
			total += s.Bytes
		}
		f.Is += fmt.Sprintf("; all changes of calls to tool caches take %s", console.Size(total))
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
