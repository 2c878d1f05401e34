package executor_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// A folder that was chosen is the one that becomes writable, or none.
func TestAPinnedRootIsTheFolderThatWasChosen(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(t *testing.T, root string){
		"it is still there": func(*testing.T, string) {},
		"another folder took its place": func(t *testing.T, root string) {
			must.Do(t, os.Rename(root, root+"-away"), os.Mkdir(root, 0o700))
		},
		"it was removed and made again": func(t *testing.T, root string) {
			must.Do(t, os.Remove(root), os.Mkdir(root, 0o700))
		},
		"a link leads to it": func(t *testing.T, root string) {
			must.Do(t, os.Rename(root, root+"-away"), os.Symlink(root+"-away", root))
		},
		"a link is on the way": func(t *testing.T, root string) {
			above := filepath.Dir(root)
			must.Do(t, os.Rename(above, above+"-away"), os.Symlink(above+"-away", above))
		},
		"it is a file now": func(t *testing.T, root string) {
			must.Do(t, os.Remove(root), os.WriteFile(root, nil, 0o600))
		},
		"it is gone": func(t *testing.T, root string) { must.Do(t, os.Remove(root)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
			root := filepath.Join(base, "above", "root")
			must.Do(t, os.MkdirAll(root, 0o700))
			held, is, err := launch.Pin(root)
			must.Do(t, err)
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

// A command runs in the folder that was judged, or not at all.
func TestACommandRunsInTheFolderThatWasJudged(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(t *testing.T, dir string){
		"it is still there":      func(*testing.T, string) {},
		"a link leads elsewhere": func(t *testing.T, dir string) { must.Do(t, os.Remove(dir), os.Symlink("/etc", dir)) },
		"a link on the way": func(t *testing.T, dir string) {
			must.Do(t, os.Rename(filepath.Dir(dir), filepath.Dir(dir)+"2"), os.Symlink(filepath.Dir(dir)+"2", filepath.Dir(dir)))
		},
		"another folder took its place": func(t *testing.T, dir string) { must.Do(t, os.Rename(dir, dir+"2"), os.Mkdir(dir, 0o700)) },
		"it was removed and made again": func(t *testing.T, dir string) { must.Do(t, os.Remove(dir), os.Mkdir(dir, 0o700)) },
	} {
		for _, mode := range []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.ReadOnly, sandbox.FullAccess} {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				t.Parallel()
				c := in(t, executor.Off, "pwd; pwd -P")
				c.Dir = filepath.Join(c.Dir, "a", "b")
				c.Sandbox.Mode = mode
				must.Do(t, os.MkdirAll(c.Dir, 0o700))
				held, is, err := launch.Pin(c.Dir)
				must.Do(t, err)
				defer held.Close()
				c.DirIs = is
				swap(t, c.Dir)
				var out bytes.Buffer
				c.Stdout = &out
				_, err = executor.Run(t.Context(), c)
				var refused *launch.DirError
				switch still := name == "it is still there"; {
				case still && (err != nil || out.String() != c.Dir+"\n"+c.Dir+"\n"):
					t.Errorf("got %q, %v", out.String(), err)
				case !still && (!errors.As(err, &refused) || !strings.Contains(err.Error(), "replaced after the call was judged") || out.Len() > 0):
					t.Errorf("got %q, %v", out.String(), err)
				}
			})
		}
	}
}

// A command runs in the directory that was judged, which it may have entered before the
// swap, or not at all.
func TestAWaitingShellIsNotUsedInAFolderThatWasReplaced(t *testing.T) {
	t.Parallel()
	pool := executor.NewPool(1, nil)
	defer pool.Close()
	c := in(t, executor.Off, "readlink /proc/self/cwd") // the pwd of bash resolves the name anew
	dir := filepath.Join(c.Dir, "dir")
	must.Do(t, os.Mkdir(dir, 0o700))
	held, is, err := launch.Pin(dir)
	must.Do(t, err)
	defer held.Close()
	c.Dir, c.DirIs = dir, is
	for range 3 {
		must.Get(pool.Run(t.Context(), c))(t)
	}
	h := pool.Reserve(c)
	must.Do(t, os.Rename(dir, dir+"2"), os.Symlink("/etc", dir))
	var out bytes.Buffer
	c.Stdout = &out
	_, err = h.Run(t.Context(), c)
	refused := err != nil && out.Len() == 0
	if entered := err == nil && out.String() == dir+"2\n"; !refused && !entered {
		t.Errorf("got %q, %v", out.String(), err)
	}
}
