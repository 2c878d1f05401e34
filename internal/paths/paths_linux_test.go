package paths_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/paths"
)

// What Resolve says about a path that exists is where the kernel ends up.
func TestResolveAgreesWithTheKernelOnRandomTrees(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(11, 12))
	names := []string{"a", "b", "c", "..", "."}
	path := func(n int) string {
		parts := make([]string, 1+random.IntN(n))
		for i := range parts {
			parts[i] = names[random.IntN(len(names))]
		}
		return strings.Join(parts, "/")
	}
	agreed := 0
	for range 40 {
		root := filepath.Join(must.Tree(t, nil), "x/y")
		must.Do(t, os.MkdirAll(root, 0o755))
		for range 12 { // where there is something already, nothing is made
			at := filepath.Join(root, filepath.Join("/", path(3)))
			if random.IntN(2) == 0 {
				os.MkdirAll(at, 0o755)
				continue
			}
			target := path(3)
			if random.IntN(4) == 0 {
				target = root + "/" + target
			}
			os.Symlink(target, at)
		}
		for range 60 {
			asked := root + "/" + path(6)
			fd, err := unix.Open(asked, unix.O_PATH|unix.O_CLOEXEC, 0)
			existing, missing := paths.Existing(asked)
			if err != nil {
				if !errors.Is(missing, err) {
					t.Fatalf("paths.Existing(%q) = %q, %v; the kernel says: %v", asked, existing, missing, err)
				}
				continue
			}
			want, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
			unix.Close(fd)
			got, resolved := paths.Resolve(asked)
			if err != nil || resolved != nil || got != want {
				t.Fatalf("paths.Resolve(%q) = %q, %v; the kernel opens %q, %v", asked, got, resolved, want, err)
			}
			if missing != nil || existing != want {
				t.Fatalf("paths.Existing(%q) = %q, %v; the kernel opens %q", asked, existing, missing, want)
			}
			agreed++
		}
	}
	if agreed < 100 {
		t.Errorf("only %d paths existed; the trees are too poor", agreed)
	}
}
