package fileworker

import (
	"errors"
	"os"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

// access opens and replaces files in one of the ways there are.
type access struct {
	t     *testing.T
	way   string
	files *Pool // nil: with the test's own rights
	p     sandbox.Profile
}

// inEveryWay calls do with each way.
func inEveryWay(t *testing.T, do func(t *testing.T, a *access)) {
	t.Helper()
	t.Run("own", func(t *testing.T) { do(t, &access{t: t, way: "own"}) })
	t.Run("worker", func(t *testing.T) {
		a := &access{t: t, way: "worker", files: new(Pool), p: sandbox.Profile{Mode: sandbox.WorkspaceWrite}}
		t.Cleanup(a.files.Close)
		a.p.Workspace = t.TempDir()
		if _, err := a.open(a.p.Workspace); errors.Is(err, sandbox.ErrUnavailable) {
			t.Skip(err)
		}
		do(t, a)
	})
}

// tree makes the workspace.
func (a *access) tree(entries map[string]string) string {
	a.p.Workspace = must.Tree(a.t, entries)
	return a.p.Workspace
}

func (a *access) open(path string) (*os.File, error) {
	if a.files == nil {
		return openFile(path)
	}
	f, _, err := a.files.Open(a.t.Context(), a.p, path)
	return f, err
}

// must opens a file that is there.
func (a *access) must(path string) *os.File {
	a.t.Helper()
	f := must.Get(a.open(path))(a.t)
	a.t.Cleanup(func() { f.Close() })
	return f
}

func (a *access) replace(path string, r Replacement) error {
	if a.files == nil {
		return replaceFile(path, r)
	}
	return a.files.Replace(a.t.Context(), a.p, path, r)
}

// rewrite reads a file and gives it new content, as the tools do.
func (a *access) rewrite(path, text string) error {
	a.t.Helper()
	old, err := a.open(path)
	if err != nil {
		return err
	}
	defer old.Close()
	seen := must.Get(old.Stat())(a.t)
	return a.replace(path, Replacement{Data: []byte(text), Old: old, Seen: seen})
}
