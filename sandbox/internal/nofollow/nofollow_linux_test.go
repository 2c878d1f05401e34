package nofollow_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// Files that a call wrote name such paths: lines of .git/objects/info/alternates, gitdir, commondir, include.path.
func TestNoPathIsTooLong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := strings.Repeat("a", 5000)
	for _, path := range []string{long, "/" + long, dir + "/" + long, dir + "/" + long + "/b", long + "/" + long} {
		if _, err := nofollow.OpenFile(path); !errors.Is(err, unix.ENAMETOOLONG) && !errors.Is(err, unix.ENOENT) {
			t.Errorf("%.40s…: %v", path, err)
		}
	}
	deep := dir
	for len(deep) < 6000 {
		deep += "/" + strings.Repeat("b", 200)
		if err := unix.Mkdir(deep[:min(len(deep), 4000)], 0o700); len(deep) < 4000 && err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nofollow.OpenFile(deep); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a path below a directory that exists: %v", err)
	}
	// The window of 4000 bytes ends between two slashes.
	name := filepath.Join(dir, "file")
	must.Do(t, os.WriteFile(name, nil, 0o600))
	padded := dir + strings.Repeat("/", 4000-len(dir)+10) + "file"
	f, err := nofollow.OpenFile(padded)
	if err != nil {
		t.Fatalf("many slashes: %v", err)
	}
	f.Close()
}
