package fileworker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

func TestADirectoryIsListedAndNoLinkFollowed(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(map[string]string{"d/f": "x", "d/sub/g": "y"})
		must.Do(t, os.Symlink("d", filepath.Join(root, "link")))
		open := func(name string) (*os.File, error) {
			if a.files == nil {
				return openDir(filepath.Join(root, name))
			}
			f, _, err := a.files.OpenDir(t.Context(), a.p, filepath.Join(root, name))
			return f, err
		}
		dir := must.Get(open("d"))(t)
		defer dir.Close()
		entries := must.Get(dir.ReadDir(-1))(t)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		slices.Sort(names)
		if !slices.Equal(names, []string{"f", "sub"}) {
			t.Errorf("the directory holds %q", names)
		}
		for _, name := range []string{"link", "link/sub", "d/f", "none"} {
			if f, err := open(name); err == nil {
				f.Close()
				t.Errorf("%s was opened as a directory", name)
			} else if name == "none" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestAHiddenDirectoryIsNotListed(t *testing.T) {
	t.Parallel()
	root := must.Tree(t, map[string]string{"d/f": "x"})
	files := new(Pool)
	t.Cleanup(files.Close)
	p := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: root, Hide: []string{filepath.Join(root, "d")}}
	var denied *sandbox.Denial
	if f, _, err := files.OpenDir(t.Context(), p, filepath.Join(root, "d")); !errors.As(err, &denied) {
		t.Errorf("got %v, %v", f, err)
	}
}
