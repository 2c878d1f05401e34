package protect

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// do does one thing to names of a directory: "mv a b", "swap a b", "mkdir a", "rmdir a", "ln a b",
// "read", which handles some of the events, and "flood", of which some are lost.
func do(t *testing.T, g *Watcher, ws, step string) {
	t.Helper()
	words := append(strings.Fields(step), "", "")
	a, b := ws+"/"+words[1], ws+"/"+words[2]
	var err error
	switch words[0] {
	case "mv":
		err = unix.Rename(a, b)
	case "swap":
		err = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	case "mkdir":
		err = os.Mkdir(a, 0o700)
	case "rmdir":
		err = os.Remove(a)
	case "ln":
		err = os.Symlink(words[1], b)
	case "read":
		g.pump(1)
	case "flood":
		for range queued(t)/4 + 1 {
			rename(t, ws+"/flood/a", ws+"/flood/b")
			rename(t, ws+"/flood/b", ws+"/flood/a")
		}
	}
	if err != nil {
		t.Fatalf("%s: %v", step, err)
	}
}

// Whatever happens to directories before their events are read, all that is left is watched.
func TestADirectoryThatIsRenamedStaysWatched(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for name, steps := range map[string]string{
		"once":                        "mv d e",
		"there and back":              "mv d e; mv e d",
		"there and back, read":        "mv d e; read; mv e d; read; mv d e",
		"exchanged":                   "swap d x",
		"exchanged, read":             "read; swap d x; read; swap d x; swap x y; read",
		"over another":                "mkdir e; read; mv d e",
		"over another at once":        "mkdir e; mv d e",
		"over a known one":            "mv d x",
		"followed by a new one":       "mv d e; mkdir d",
		"replaced by a new one":       "mv d e; rmdir e; mkdir e",
		"removed and made before":     "rmdir d; mkdir d; mv d e",
		"removed, another renamed":    "rmdir d; mv x d; mv d e; mkdir x",
		"in a circle":                 "mv d e; mv x d; mv y x; mv e y",
		"in a circle, read":           "mv d e; mv x d; read; mv y x; read; mv e y",
		"out and in":                  "mv d p/d; mv p/d e",
		"out and in, read":            "mv d p/d; read; mv p/d e",
		"in a directory that moves":   "mv p/s p/u; mv p q; mv q/u q/s; mkdir p; mkdir p/s",
		"behind a link":               "mv p/s p/u; mv p q; ln q p",
		"behind a link, with another": "mv p/s p/u; mv p q; swap q/u q/w; ln q p; mv d e",
		"to dependencies and back":    "mv d vendor; mv vendor e",
		"to dependencies, read":       "mv d vendor; read; mv vendor e",
		"when events are lost":        "flood; mv d e; mv x d",
		"before events are lost":      "mv d e; flood; mv e d; swap d x",
		"lost behind a lost one":      "flood; read; swap d x; flood; swap x y; mv d e",
		"exchanged in a crowd":        "mv flood/a flood/b; swap d x; mv flood/b flood/a; swap d y; mv flood/a flood/b; mv d e",
	} {
		for _, dir := range strings.Fields("d e x y p/s p/u p/w q/s q/u q/w") {
			t.Run(name+" "+dir, func(t *testing.T) {
				t.Parallel()
				g, ws := watchHooks(t)
				for _, path := range strings.Fields("d x y p p/s p/w flood flood/a") {
					do(t, g, ws, "mkdir "+path)
				}
				c := started(t, g)
				g.mu.Lock() // the events wait
				for step := range strings.SplitSeq(steps, ";") {
					do(t, g, ws, strings.TrimSpace(step))
				}
				g.pump(1 << 20)
				g.mu.Unlock()
				in, err := os.Lstat(ws + "/" + dir)
				real, _ := filepath.EvalSymlinks(ws + "/" + dir)
				if err == nil && in.IsDir() && real == ws+"/"+dir && !seesHook(c, ws+"/"+dir, t) {
					t.Error("it is not watched")
				}
			})
		}
	}
}

// churn makes, removes, renames and exchanges directories of a few names, and files.
func churn(r *rand.Rand, ws string) {
	name := func() string {
		path := fmt.Sprint(ws, "/", r.IntN(8))
		if r.IntN(4) == 0 {
			path = fmt.Sprint(path, "/", r.IntN(3))
		}
		return path
	}
	from, to := name(), name()
	switch r.IntN(12) {
	case 0, 1, 2:
		_ = os.Mkdir(from, 0o700)
	case 3:
		_ = os.Remove(from)
	case 4:
		_ = os.Symlink(to, from)
	case 5:
		_ = os.WriteFile(from, nil, 0o600)
	case 6, 7:
		_ = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	default:
		_ = os.Rename(from, to)
	}
}

// compareTree compares what is known of a directory with what is there.
func compareTree(t *testing.T, g *Watcher, f *directory, path string) {
	t.Helper()
	in, err := nofollow.Lstat(path)
	if err != nil || !f.is(in) || f.path() != path {
		t.Errorf("%s: the known directory is another (%v; known as %s)", path, err, f.path())
		return
	}
	if _, dark := g.tree.unwatched[f]; g.tree.watch[f.wd] != f && !dark {
		t.Errorf("%s is neither watched nor searched", path)
	}
	entries := must.Get(os.ReadDir(path))(t)
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
		compareTree(t, g, sub, path+"/"+name)
	}
	for name := range there {
		t.Errorf("%s/%s is not known", path, name)
	}
}

// However late its events are read, and in whatever pieces, the tree is in the end what is on
// the disk.
func TestTheTreeIsInTheEndWhatIsOnTheDisk(t *testing.T) {
	t.Parallel()
	for seed := range must.Seeds(t, 8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			g, ws := watchHooks(t)
			<-g.ready
			var beside sync.WaitGroup
			for i := range seed % 4 {
				// Ends by itself.
				beside.Go(func() {
					for r := rand.New(rand.NewPCG(seed, i)); r.IntN(4000) > 0; {
						churn(r, ws)
					}
				})
			}
			r := rand.New(rand.NewPCG(seed, 9))
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
			beside.Wait()
			g.mu.Lock()
			defer g.mu.Unlock()
			g.catchUp(&Call{watcher: g}) // as at the end of a call
			compareTree(t, g, g.tree.roots[0], ws)
		})
	}
}
