package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
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
