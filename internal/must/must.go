// Package must is for tests only. It ends a test whose preparation fails, and reports how two values differ.
package must

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// failure is error, or a pointer type that a function returns instead, for which nil means no error.
type failure interface {
	error
	comparable
}

// Do ends the test if one of errs is an error. Like t.Fatal, Do and Get must be called on the goroutine of the test.
// The body of a fuzz test has its own *testing.T.
func Do[E failure](t testing.TB, errs ...E) {
	t.Helper()
	var none E
	for _, err := range errs {
		if err != none {
			t.Fatal(err)
		}
	}
}

// Get takes the results of a function: must.Get(os.ReadFile(name))(t) returns the content, and ends the test after an
// error.
func Get[T any, E failure](v T, err E) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return v
	}
}

// Program writes a program. A process that another goroutine starts meanwhile does not inherit the open file, so that the
// program can be started at once (ETXTBSY, golang.org/issue/22315).
func Program(t testing.TB, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, content, 0o755)
	syscall.ForkLock.RUnlock()
	Do(t, err, os.Chmod(path, 0o755))
}

// Seeds returns the number of random cases for a test: few, or TOOLD_SEEDS times as many for .ci/nightly.
func Seeds(t testing.TB, few uint64) uint64 {
	t.Helper()
	if text := os.Getenv("TOOLD_SEEDS"); text != "" {
		return few * Get(strconv.ParseUint(text, 10, 32))(t)
	}
	return few
}

// Long skips a test with -short. It is for tests that take minutes with the race detector.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long, and -short is given")
	}
}

// Match reports how got differs from want. The test continues.
func Match(t testing.TB, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Error(diff)
	}
}

// Tree creates files ("name": content), directories ("name/") and links ("name": "-> target"), and returns their root
// without links.
func Tree(t testing.TB, entries map[string]string) string {
	t.Helper()
	root := Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for name, content := range entries {
		path := filepath.Join(root, name)
		Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			Do(t, os.Symlink(target, path))
		} else if strings.HasSuffix(name, "/") {
			Do(t, os.MkdirAll(path, 0o755))
		} else {
			Do(t, os.WriteFile(path, []byte(content), 0o644))
		}
	}
	return root
}

// Workspace returns a workspace with links into and out of it, and a directory next to it.
func Workspace(t testing.TB) (ws, out string) {
	t.Helper()
	base := Get(filepath.EvalSymlinks(t.TempDir()))(t)
	ws, out = filepath.Join(base, "ws"), filepath.Join(base, "out")
	for _, dir := range []string{ws + "/src/deep", ws + "/.git/hooks", ws + "/nested/.git", out + "/sub"} {
		Do(t, os.MkdirAll(dir, 0o755))
	}
	for _, file := range []string{ws + "/a.txt", ws + "/b.txt", ws + "/.env", ws + "/src/main.go", ws + "/.git/HEAD", out + "/secret"} {
		Do(t, os.WriteFile(file, []byte("x\n"), 0o644))
	}
	for link, target := range map[string]string{ws + "/link": out + "/sub", ws + "/inside": "src", ws + "/file": out + "/secret", ws + "/loop": "loop"} {
		Do(t, os.Symlink(target, link))
	}
	return ws, out
}
