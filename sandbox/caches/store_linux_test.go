package caches_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/rerun"
	"github.com/toold/toold/sandbox/caches"
)

// opened opens a store for a cache that the machine lacks, and returns the directory that calls write.
func opened(t *testing.T, store string) (set *caches.Set, written string) {
	t.Helper()
	set = must.Get(caches.Open(t.Context(), nil, store, []caches.Cache{{Path: "/nowhere/cache", Env: "CACHE"}}))(t)
	t.Cleanup(set.Close)
	dirs := must.Get(filepath.Glob(store + "/*/private"))(t)
	if len(dirs) != 1 {
		t.Fatal(dirs)
	}
	return set, dirs[0]
}

func measured(t *testing.T, dir string) caches.Store {
	t.Helper()
	list, err := caches.Stores(dir)
	if len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0]
}

func TestDirectoriesThatACallHasClosedCount(t *testing.T) {
	t.Parallel()
	if rerun.AsUser(t) {
		return
	}
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	set, written := opened(t, dir+"/store")
	inner := written + "/a/b"
	must.Do(t, errors.Join(os.MkdirAll(inner, 0o700), os.WriteFile(inner+"/file", make([]byte, 1<<20), 0o600)))
	elsewhere := filepath.Join(dir, "elsewhere")
	must.Do(t, errors.Join(os.Mkdir(elsewhere, 0), os.Symlink(elsewhere, written+"/link")))
	for _, mode := range []os.FileMode{0, 0o100, 0o400} {
		must.Do(t, errors.Join(os.Chmod(inner, mode), os.Chmod(written+"/a", mode)))
		if s := measured(t, dir); s.Bytes < 1<<20 || s.Bytes > 2<<20 || s.Used.IsZero() {
			t.Errorf("mode %o: the store has %d bytes, used %v", mode, s.Bytes, s.Used)
		}
		is := must.Get(os.Lstat(written + "/a"))(t)
		must.Do(t, os.Chmod(written+"/a", 0o700))
		isBelow := must.Get(os.Lstat(inner))(t)
		if is.Mode().Perm() != mode || isBelow.Mode().Perm() != mode {
			t.Errorf("mode %o: after it was measured the directories have %v and %v", mode, is.Mode(), isBelow.Mode())
		}
	}
	must.Do(t, os.Chmod(written+"/a", 0))
	before := set.Version()
	if err := set.Limit(t.Context(), 1<<20); err != nil || set.Version() == before {
		t.Errorf("calls to come have the same caches, %v", err)
	}
	removes(t, set, dir+"/store")
	if is := must.Get(os.Lstat(elsewhere))(t); is.Mode().Perm() != 0 {
		t.Errorf("the mode of a directory to which a link leads is %v", is.Mode())
	}
}

// removes removes a store that is not used any more.
func removes(t *testing.T, set *caches.Set, store string) {
	t.Helper()
	set.Close()
	if removed, err := caches.RemoveStore(store); !removed || err != nil {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if _, err := os.Lstat(store); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store: %v", err)
	}
}

// A call makes directories whose paths are longer than the kernel takes.
func TestWhatCannotBeMeasuredIsTooMuchAndGoesFirst(t *testing.T) {
	t.Parallel()
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	set, at := opened(t, dir+"/store")
	chain := strings.Repeat("/"+strings.Repeat("d", 200), 11)
	must.Do(t, errors.Join(os.MkdirAll(at+"/one"+chain, 0o700), os.MkdirAll(at+"/two"+chain, 0o700)))
	must.Do(t, os.Rename(at+"/two", at+"/one"+chain+"/two"))
	if s := measured(t, dir); s.Bytes < 1<<50 || !s.Used.IsZero() {
		t.Errorf("the store has %d bytes, used %v", s.Bytes, s.Used)
	}
	before := set.Version()
	if err := set.Limit(t.Context(), 1<<40); err == nil || set.Version() == before {
		t.Errorf("calls to come have the same caches, %v", err)
	}
	removes(t, set, dir+"/store")
}
