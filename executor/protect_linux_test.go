package executor_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
)

// A protected path stays what it is, also when the folders above it are renamed.
func TestAProtectedPathCannotBeChangedMovedOrReplaced(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, `{ echo evil > a/b/config; rm -f a/b/config; mv a/b/config x; ln -f x a/b/config; chmod 777 a/b/config
mv a z; mv a/b a/z; rm -rf a; touch a/b/hooks/new; rm -r a/b/hooks; } 2>/dev/null
echo free > a/b/beside && mv a/b/beside a/b/moved && cat a/b/moved a/b/config`)
	config, hooks := filepath.Join(c.Dir, "a/b/config"), filepath.Join(c.Dir, "a/b/hooks")
	must.Do(t, os.MkdirAll(hooks, 0o700))
	for _, file := range []string{config, filepath.Join(hooks, "old")} {
		must.Do(t, os.WriteFile(file, []byte("mine\n"), 0o400))
	}
	c.Sandbox.Protect = []string{config, hooks, filepath.Join(c.Dir, "a/b/missing")}
	got, _ := run(t, c)
	if got.Out != "free\nmine\n" {
		t.Errorf("the call printed %q and %q", got.Out, got.Err)
	}
	names, err := os.ReadDir(hooks)
	if err != nil || len(names) != 1 || names[0].Name() != "old" {
		t.Errorf("in the protected folder: %v, %v", names, err)
	}
	info, err := os.Lstat(config)
	if err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("the protected file: %v, %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(c.Dir, "a/b/missing")); err == nil {
		t.Error("something was made where a protected path was missing")
	}
}
