package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/rerun"
)

func TestWhatWasMissingIsSeenWhenItComes(t *testing.T) {
	t.Parallel()
	for name, come := range map[string]func(dir string) error{
		"a file":            func(dir string) error { return os.WriteFile(dir+"/missing", nil, 0o600) },
		"a folder above":    func(dir string) error { return os.MkdirAll(dir+"/far/away/missing", 0o700) },
		"a link above":      func(dir string) error { return os.Symlink("there/deep", dir+"/far") },
		"where a link goes": func(dir string) error { return os.WriteFile(dir+"/target", nil, 0o600) },
		"by another name":   func(dir string) error { return os.Rename(dir+"/there/file", dir+"/missing") },
		"by another folder": func(dir string) error {
			return errors.Join(os.Remove(dir+"/way"), os.Symlink("there/deep", dir+"/way"))
		},
		"what was there": func(dir string) error { return os.Rename(dir+"/there/file", dir+"/present") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			must.Do(t, errors.Join(
				os.MkdirAll(dir+"/there/deep/away/missing", 0o700), os.WriteFile(dir+"/there/file", nil, 0o600), os.WriteFile(dir+"/present", nil, 0o600),
				os.Symlink("target", dir+"/dangling"), os.Symlink("there", dir+"/way"),
			))
			s := TakeCached([]string{dir}, []string{
				dir + "/missing", dir + "/far/away/missing", dir + "/dangling", dir + "/present", dir + "/way/away/missing", dir + "/file/missing",
			})
			defer s.Close()
			s.unchanged.Store(s.unchangedAt(time.Now().Add(time.Minute)))
			if s.unchanged.Load() == nil {
				t.Fatal("nothing is believed to be missing")
			}
			if !s.Same() {
				t.Skip("somebody mounts all the time here")
			}
			must.Do(t, come(dir))
			if s.Same() {
				t.Error("nothing was seen")
			}
		})
	}
}

func TestAllShareOneStateUntilItChanges(t *testing.T) {
	t.Parallel()
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	var all Shared
	take := func() *Cached { return all.Take([]string{dir}, []string{dir + "/key"}) }
	first := take()
	defer first.Close()
	if !first.Same() {
		t.Skip("somebody mounts all the time here")
	}
	if second := take(); second != first {
		t.Error("it was taken again without a change")
	} else {
		second.Close()
	}
	must.Do(t, os.WriteFile(dir+"/key", nil, 0o600))
	later := take()
	defer later.Close()
	if later == first || !later.Same() || first.Same() {
		t.Errorf("after a change: the same one is given: %v, the new one fits: %v, the old one: %v", later == first, later.Same(), first.Same())
	}
	other := all.Take([]string{dir}, nil)
	all.Close()
	if other == later || !other.Same() {
		t.Error("other paths have the same state, or it was closed for those who have it")
	}
	other.Close()
	if other.Same() {
		t.Error("it compares mounts when all have closed it")
	}
}

// The kernel signals a mount once to each open file.
func TestAMountIsSeenByAll(t *testing.T) {
	t.Parallel()
	dir := rerun.Mounting(t)
	if dir == "" {
		return
	}
	must.Do(t, os.Mkdir(dir+"/sub", 0o700))
	s := TakeCached([]string{dir}, nil)
	defer s.Close()
	if !s.Same() {
		t.Fatal("nothing was mounted yet")
	}
	must.Do(t, unix.Mount("none", dir+"/sub", "tmpfs", 0, ""))
	for range 3 {
		if s.Same() {
			t.Error("a mount was not seen")
		}
	}
}

func TestAFolderThatJustChangedIsNotBelieved(t *testing.T) {
	t.Parallel()
	now := time.Now()
	dir := t.TempDir()
	s := TakeCached(nil, []string{dir + "/missing"})
	defer s.Close()
	if s.unchangedAt(now) != nil {
		t.Error("a change within the same tick of its clock would not be seen")
	}
}
