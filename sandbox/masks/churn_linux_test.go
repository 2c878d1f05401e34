package masks_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

func churn(r *rand.Rand, ws string) {
	name := func() string { return fmt.Sprint(ws, []string{"", "/p", "/q"}[r.IntN(3)], "/n", r.IntN(3)) }
	from, to := name(), name()
	if r.IntN(8) == 0 {
		from, to = ws+"/p", ws+"/q"
	}
	switch r.IntN(12) {
	case 0, 1:
		_ = os.Mkdir(from, 0o700)
	case 2, 3:
		_ = os.WriteFile(from+"/.env", nil, 0o600)
	case 4:
		_ = os.MkdirAll(from+"/sub", 0o700)
		_ = os.WriteFile(from+"/sub/.env", nil, 0o600)
	case 5:
		_ = os.RemoveAll(from)
	case 6, 7:
		_ = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	default:
		_ = os.Rename(from, to)
	}
}

func secrets(t *testing.T, ws string) []string {
	t.Helper()
	list := []string{}
	must.Do(t, filepath.WalkDir(ws, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == ".env" {
			list = append(list, path[len(ws)+1:])
		}
		return err
	}))
	slices.Sort(list)
	return list
}

// Every file that a rule is about is masked when a call begins, however directories were moved,
// and also where events were lost.
func TestWhatARuleIsAboutIsMaskedHoweverDirectoriesMove(t *testing.T) {
	must.Long(t)
	t.Parallel()
	seeds := []uint64{392, 392, 392, 392, 927, 927, 927, 927} // which found something now and then
	for seed := range must.Seeds(t, 10) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 3))
			p := newProject(t, policy.File{Paths: []policy.Rule{rule("dotenv", policy.Ask, nil, "${workspace}/**/.env")}}, "p/a", "q/a")
			for range 10 {
				for range r.IntN(30) {
					churn(r, p.ws)
				}
				if r.IntN(40) == 0 { // more events than the kernel keeps
					for range 9000 {
						_ = os.Mkdir(p.ws+"/none", 0o700)
						_ = os.Remove(p.ws + "/none")
					}
				}
				for range r.IntN(10) {
					churn(r, p.ws)
				}
				p.equal(p.masked(p.policy), secrets(t, p.ws)...)
			}
		})
	}
}

// While the new parent of a directory is read, it takes the name of the old one.
func TestADirectoryWhoseOldPathStillLeadsToItIsWatched(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{Paths: []policy.Rule{rule("dotenv", policy.Ask, nil, "${workspace}/**/.env")}}, "old/sub/a")
	path := func(name string) string { return filepath.Join(p.ws, name) }
	for i := range 1000 {
		must.Do(t, p.Use(t.Context(), p.policy))
		must.Do(t, os.Mkdir(path("new"), 0o700))
		must.Do(t, os.Rename(path("old/sub"), path("new/sub")))
		for range i % 100 { // about as long as the watcher needs to find it
			_ = os.Chmod(path("new/sub"), 0o700)
		}
		must.Do(t, unix.Renameat2(unix.AT_FDCWD, path("new"), unix.AT_FDCWD, path("old"), unix.RENAME_EXCHANGE))
		must.Do(t, p.Use(t.Context(), p.policy))
		must.Do(t, os.WriteFile(path("old/sub/.env"), nil, 0o600))
		p.equal(p.masked(p.policy), "old/sub/.env")
		must.Do(t, os.Remove(path("old/sub/.env")))
		must.Do(t, os.Remove(path("new")))
	}
}
