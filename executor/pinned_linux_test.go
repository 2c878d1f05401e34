package executor_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/sandbox"
)

// A folder that was chosen is the one that becomes writable, or none.
func TestAPinnedRootIsTheFolderThatWasChosen(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(t *testing.T, root string){
		"it is still there": func(*testing.T, string) {},
		"another folder took its place": func(t *testing.T, root string) {
			must(t, os.Rename(root, root+"-away"), os.Mkdir(root, 0o700))
		},
		"it was removed and made again": func(t *testing.T, root string) {
			must(t, os.Remove(root), os.Mkdir(root, 0o700))
		},
		"a link leads to it": func(t *testing.T, root string) {
			must(t, os.Rename(root, root+"-away"), os.Symlink(root+"-away", root))
		},
		"a link is on the way": func(t *testing.T, root string) {
			above := filepath.Dir(root)
			must(t, os.Rename(above, above+"-away"), os.Symlink(above+"-away", above))
		},
		"it is a file now": func(t *testing.T, root string) {
			must(t, os.Remove(root), os.WriteFile(root, nil, 0o600))
		},
		"it is gone": func(t *testing.T, root string) { must(t, os.Remove(root)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			root := filepath.Join(base, "above", "root")
			must(t, os.MkdirAll(root, 0o700))
			held, is, err := sandbox.Pin(root)
			must(t, err)
			defer held.Close()
			swap(t, root)
			c := in(t, executor.Off, "echo x >"+root+"/f")
			c.Sandbox.Write, c.Sandbox.Pinned = []string{root}, map[string]string{root: is}
			_, err = executor.Run(t.Context(), c)
			written, _ := filepath.Glob(base + "/*/*/f")
			if still := name == "it is still there"; still != (err == nil) || still != (len(written) == 1) {
				t.Errorf("got %v, written %q", err, written)
			}
			if err != nil && !errors.Is(err, sandbox.ErrUnavailable) {
				t.Errorf("the refusal is not one of the sandbox: %v", err)
			}
		})
	}
}

// must ends a test whose own steps fail.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
