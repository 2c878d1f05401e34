package fileworker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(map[string]string{"f": "x", "d/g": "y", "link": "-> f", "folder-link": "-> d"})
		for name, want := range map[string]string{
			"d": "a directory", "link": "symbolic link", "folder-link/g": "symbolic link", "none": "no such file",
		} {
			f, err := a.open(filepath.Join(root, name))
			if err == nil {
				f.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", name, err, want)
			}
		}
		if _, err := a.open(filepath.Join(root, "none")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("missing file: %v", err)
		}
		if _, err := openFile(os.DevNull); err == nil || !strings.Contains(err.Error(), "a device") {
			t.Errorf("device: %v", err)
		}
	})
}

func TestReplaceFileKeepsWhatIsNotContent(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(map[string]string{"script": "old"})
		path := filepath.Join(root, "script")
		must.Do(t, os.Chmod(path, 0o751))
		old := a.must(path)
		must.Do(t, a.replace(path, Replacement{Data: []byte("new content"), Old: old}))
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o751 || content(t, path) != "new content" {
			t.Errorf("%v %v %q", err, info.Mode(), content(t, path))
		}
		only(t, root, "script")
	})
}

func TestAFileIsRemovedAsItWasSeenOnly(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(map[string]string{"gone": "old", "changed": "old", "replaced": "old"})
		for _, name := range []string{"gone", "changed", "replaced"} {
			path := filepath.Join(root, name)
			old := a.must(path)
			seen, err := old.Stat()
			if err != nil {
				t.Fatal(err)
			}
			switch name {
			case "changed":
				err = os.WriteFile(path, []byte("other content"), 0o644)
			case "replaced":
				err = errors.Join(os.Rename(path, path+"2"), os.WriteFile(path, []byte("new"), 0o644))
			}
			if err != nil {
				t.Fatal(err)
			}
			err = a.replace(path, Replacement{Old: old, Seen: seen, Remove: true})
			if (err == nil) != (name == "gone") {
				t.Errorf("%s: %v", name, err)
			}
		}
		like := a.must(filepath.Join(root, "changed"))
		must.Do(t, errors.Join(like.Chmod(0o751), a.replace(filepath.Join(root, "new"), Replacement{Data: []byte("x"), Like: like})))
		if info, err := os.Stat(filepath.Join(root, "new")); err != nil || info.Mode() != 0o751 {
			t.Errorf("%v %v", info, err)
		}
		only(t, root, "changed", "new", "replaced", "replaced2")
	})
}

func TestReplaceFileMakesNewFilesAndNeverReplacesByAccident(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(map[string]string{"there": "old", "folder-link": "-> .", "dangling": "-> nowhere"})
		must.Do(t, a.replace(filepath.Join(root, "a/b/c"), Replacement{Data: []byte("x"), Parents: true}))
		if got := content(t, filepath.Join(root, "a/b/c")); got != "x" {
			t.Errorf("got %q", got)
		}
		for name, r := range map[string]Replacement{
			"there":               {Data: []byte("x")},                // appeared meanwhile
			"dangling":            {Data: []byte("x")},                // a link appeared
			"folder-link/new":     {Data: []byte("x"), Parents: true}, // in a folder that became a link
			"missing/new":         {Data: []byte("x")},                // no parents wanted
			"there/below-a-file/": {Data: []byte("x"), Parents: true},
		} {
			if err := a.replace(filepath.Join(root, name), r); err == nil {
				t.Errorf("%s written", name)
			}
		}
		if got := content(t, filepath.Join(root, "there")); got != "old" {
			t.Errorf("got %q", got)
		}
		only(t, root, "a", "dangling", "folder-link", "there")
	})
}

func TestReplaceFileRefusesAFileThatIsNotTheOneThatWasOpened(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(map[string]string{"f": "old", "other": "other"})
		path := filepath.Join(root, "f")
		old := a.must(path)
		must.Do(t, os.Rename(filepath.Join(root, "other"), path))
		if err := a.replace(path, Replacement{Data: []byte("new"), Old: old}); err == nil {
			t.Error("replaced")
		}
		must.Do(t, os.Remove(path))
		must.Do(t, os.Symlink("other", path))
		if err := a.replace(path, Replacement{Data: []byte("new"), Old: old}); err == nil {
			t.Error("a link replaced")
		}
		only(t, root, "f")
	})
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f := must.Get(openFile(path))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

func content(t *testing.T, path string) string {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	return string(data)
}

// only verifies that nothing else, such as a temporary file, is in the folder.
func only(t *testing.T, folder string, want ...string) {
	t.Helper()
	entries := must.Get(os.ReadDir(folder))(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}
