package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

// stir makes, removes, renames and exchanges repositories of a few names, and what git runs
// in them.
func stir(r *rand.Rand, ws string) {
	name := func() string { return fmt.Sprint(ws, []string{"", "/p", "/q"}[r.IntN(3)], "/n", r.IntN(3)) }
	from, to := name(), name()
	if r.IntN(8) == 0 {
		from, to = ws+"/p", ws+"/q"
	}
	switch r.IntN(12) {
	case 0, 1:
		_ = os.MkdirAll(from+"/.git", 0o700)
	case 2, 3:
		_ = os.Mkdir(from+"/.git/hooks", 0o700)
		_ = os.WriteFile(from+"/.git/hooks/pre-commit", nil, 0o700)
	case 4:
		_ = os.WriteFile(from+"/.git/config", []byte("[core]\n\thooksPath = /tmp\n"), 0o600)
	case 5:
		_ = os.RemoveAll(from)
	case 6, 7:
		_ = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	default:
		_ = os.Rename(from, to)
	}
}

// harmful lists what git would run of what stir makes.
func harmful(t *testing.T, ws string) (left []string) {
	t.Helper()
	must.Do(t, filepath.WalkDir(ws, func(path string, e fs.DirEntry, err error) error {
		made := strings.HasSuffix(path, ".git/config") || strings.HasSuffix(path, ".git/hooks/pre-commit")
		if made && !strings.HasPrefix(path, ws+"/mine/") {
			left = append(left, path)
		}
		return err
	}))
	return left
}

// However late its events are read, and whether some are lost, nothing stays of what a call
// has made that git would run.
func TestNothingOfACallStaysHoweverItsEventsAreRead(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for seed := range must.Seeds(t, 80) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 9))
			_, ws := project(t)
			g, err := New(Options{Roots: []string{ws}, Names: []string{".git/hooks", ".git/config"}, Quarantine: t.TempDir()})
			must.Do(t, errors.Join(err, os.Mkdir(ws+"/p", 0o700), os.Mkdir(ws+"/q", 0o700)))
			t.Cleanup(g.Close)
			c := started(t, g)
			for range 1 + r.IntN(8) {
				g.mu.Lock() // the events wait
				for range r.IntN(20) {
					stir(r, ws)
				}
				switch r.IntN(3) {
				case 0: // they are lost, and the kernel says so
					g.take()
					g.handle(event{mask: unix.IN_Q_OVERFLOW})
				case 1:
					g.pump(1)
				}
				for range r.IntN(4) {
					stir(r, ws)
				}
				g.mu.Unlock()
			}
			c.End()
			if left := harmful(t, ws); len(left) > 0 {
				t.Errorf("left: %s", strings.Join(left, " "))
			}
		})
	}
}
