package executor_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
)

// What is hidden is hidden by its path: a folder above it that a call could
// rename would show it to the next one.
func TestAHiddenPathCannotBeMovedToANameThatIsNotHidden(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, `mv a elsewhere; mv a/b elsewhere; mv a/b/secret elsewhere; rm -rf a/b
mkdir a/new && echo x > a/b/note && mv a/b/note a/new/ && cat a/new/note && rm -r a/new; ls a/b`)
	secret := filepath.Join(c.Dir, "a/b/secret")
	must.Do(t, os.MkdirAll(secret, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(secret, "key"), []byte("SEKRET"), 0o600))
	c.Sandbox.Hide = []string{secret, filepath.Join(c.Dir, "a/c/missing")}
	got, _ := run(t, c)
	if got.Out != "x\nsecret\n" {
		t.Errorf("the call printed %q and %q", got.Out, got.Err)
	}
	if b, err := os.ReadFile(filepath.Join(secret, "key")); err != nil || string(b) != "SEKRET" {
		t.Errorf("the hidden file: %q, %v", b, err)
	}
	err := filepath.WalkDir(c.Dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			return nil // a copy of the cover, which nobody but root can look into
		}
		if err == nil && d.Name() == "key" && filepath.Dir(path) != secret {
			t.Errorf("%s can be read by the next call", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
