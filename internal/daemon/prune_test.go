package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/sandbox"
)

// keptCaches is a state directory with the stores of some workspaces, each of which has
// 64 KiB and was used as many hours ago as its name has letters.
func keptCaches(t *testing.T, names ...string) (cfg config.Config, store func(name string) string) {
	t.Helper()
	dir := t.TempDir()
	cfg = config.Config{StateDir: dir, Limits: config.Limits{CachesKeep: 24 * time.Hour, CachesTotal: 1 << 30}}
	store = func(name string) string { return filepath.Join(dir, "caches", name+"-0123456789ab") }
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(store(name), "go-1/changed"), 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{
			store(name) + "/lock": "", store(name) + "/go-1/changed/file": strings.Repeat("x", 64<<10), store(name) + ".of": dir + "/" + name,
		} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		used := time.Now().Add(-time.Duration(len(name)) * time.Hour)
		if err := os.Chtimes(store(name)+"/lock", used, used); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return cfg, store
}

func left(t *testing.T, store func(string) string, names ...string) string {
	t.Helper()
	var found []string
	for _, name := range names {
		if _, err := os.Lstat(store(name)); err == nil {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

func TestToolCachesDoNotGrowWithoutBound(t *testing.T) {
	t.Parallel()
	names := []string{"a", "bb", "ccc"}
	for _, c := range []struct {
		why    string
		change func(cfg *config.Config)
		want   string
	}{
		{"nothing is too much", func(*config.Config) {}, "a bb ccc"},
		{"a workspace is gone", func(cfg *config.Config) { os.Remove(cfg.StateDir + "/bb") }, "a ccc"},
		{"two were not used for long", func(cfg *config.Config) { cfg.Limits.CachesKeep = 90 * time.Minute }, "a"},
		{"one is too much", func(cfg *config.Config) { cfg.Limits.CachesTotal = 192 << 10 }, "a bb"},
	} {
		cfg, store := keptCaches(t, names...)
		c.change(&cfg)
		if err := pruneCaches(cfg); err != nil {
			t.Errorf("%s: %v", c.why, err)
		}
		if got := left(t, store, names...); got != c.want {
			t.Errorf("%s: %s are left, want %s", c.why, got, c.want)
		}
	}
}

// The store of a daemon that runs stays.
func TestACacheInUseIsNotPruned(t *testing.T) {
	t.Parallel()
	cfg, _ := keptCaches(t)
	cfg.Workspace, cfg.Limits.CachesTotal = t.TempDir(), 1000
	if err := readyStore(cfg); err != nil {
		t.Fatal(err)
	}
	open, err := sandbox.OpenCaches(t.Context(), CacheStore(cfg), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	big := filepath.Join(CacheStore(cfg), "file")
	if err := os.WriteFile(big, make([]byte, 8<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := pruneCaches(cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(big); err != nil {
		t.Fatalf("what is in use was removed: %v", err)
	}
}
