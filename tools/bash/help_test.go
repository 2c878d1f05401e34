package bash

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/internal/must"
)

// workspace makes a small tree: a workspace with links into and out of it, and a
// folder beside it. It returns both, canonical.
func workspace(t testing.TB) (ws, out string) {
	t.Helper()
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	ws, out = filepath.Join(base, "ws"), filepath.Join(base, "out")
	for _, dir := range []string{ws + "/src/deep", ws + "/.git/hooks", ws + "/nested/.git", out + "/sub"} {
		must.Do(t, os.MkdirAll(dir, 0o755))
	}
	for _, file := range []string{ws + "/a.txt", ws + "/b.txt", ws + "/.env", ws + "/src/main.go", ws + "/.git/HEAD", out + "/secret"} {
		must.Do(t, os.WriteFile(file, []byte("x\n"), 0o644))
	}
	for link, target := range map[string]string{ws + "/link": out + "/sub", ws + "/inside": "src", ws + "/file": out + "/secret", ws + "/loop": "loop"} {
		must.Do(t, os.Symlink(target, link))
	}
	return ws, out
}

// environment is what commands of the tests see.
func environment() []string {
	return []string{"HOME=/home/u", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "USER=u"}
}
