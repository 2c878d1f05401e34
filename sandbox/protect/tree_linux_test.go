package protect

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// churn makes, removes, renames and exchanges directories of a few names in one directory,
// and files.
func churn(r *rand.Rand, ws string) {
	from, to := fmt.Sprint(ws, "/", r.IntN(8)), fmt.Sprint(ws, "/", r.IntN(8))
	switch r.IntN(12) {
	case 0, 1, 2:
		_ = os.Mkdir(from, 0o700)
	case 3:
		_ = os.Remove(from)
	case 4:
		_ = os.Mkdir(from+"/sub", 0o700)
	case 5:
		_ = os.WriteFile(from, nil, 0o600)
	case 6, 7:
		_ = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	default:
		_ = os.Rename(from, to)
	}
}

// compareTree compares what is known of a directory with what is there.
func compareTree(t *testing.T, f *directory, path string) {
	t.Helper()
	in, err := nofollow.Stat(unix.AT_FDCWD, path)
	if err != nil || !f.is(in) || f.path() != path {
		t.Errorf("%s: the known directory is another (%v; known as %s)", path, err, f.path())
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]fs.DirEntry{}
	for _, e := range entries {
		if e.IsDir() {
			there[e.Name()] = e
		}
	}
	for name, sub := range f.children {
		if there[name] == nil {
			t.Errorf("%s/%s is known and not there", path, name)
			continue
		}
		delete(there, name)
		compareTree(t, sub, path+"/"+name)
	}
	for name := range there {
		t.Errorf("%s/%s is not known", path, name)
	}
}

// However late its events are read, and in whatever pieces, the tree is in the end what is on
// the disk.
func TestTheTreeIsInTheEndWhatIsOnTheDisk(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 9))
			g, ws := watchHooks(t)
			<-g.ready
			for range 60 {
				g.mu.Lock() // the events wait
				for range r.IntN(40) {
					churn(r, ws)
				}
				for range r.IntN(4) {
					g.pump(1)
					churn(r, ws)
				}
				g.mu.Unlock()
				for range r.IntN(10) {
					churn(r, ws)
				}
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			g.catchUp(&Call{watcher: g}) // as at the end of a call
			compareTree(t, g.tree.roots[0], ws)
		})
	}
}
