//go:build unix

package fileworker

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/paths"
)

func portableFolder(t *testing.T) string {
	t.Helper()
	dir := must.Get(paths.Resolve(t.TempDir()))(t)
	return dir
}

func put(t *testing.T, path, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(content), 0o640))
}

func TestPortableOpenFollowsNoLinkAndWaitsForNothing(t *testing.T) {
	t.Parallel()
	dir := portableFolder(t)
	put(t, filepath.Join(dir, "file"), "content")
	err := errors.Join(
		os.Mkdir(filepath.Join(dir, "real"), 0o700),
		os.Symlink("real", filepath.Join(dir, "link")),
		os.Symlink("file", filepath.Join(dir, "to-file")),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
	)
	put(t, filepath.Join(dir, "real", "inner"), "inner")
	if err != nil {
		t.Fatal(err)
	}
	f := must.Get(openPortable(filepath.Join(dir, "real", "inner")))(t)
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "inner" {
		t.Errorf("read %q, %v", b, err)
	}
	for name, want := range map[string]string{
		"link/inner": "symbolic link", "to-file": "symbolic link", "fifo": "no regular file", "real": "no regular file",
		"file/x": "symbolic link", "none": "no such file",
	} {
		if _, err := openPortable(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	if _, err := openPortable(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file is not told as one: %v", err)
	}
}

func TestPortableReplaceKeepsTheOldFileOrGivesTheNewOne(t *testing.T) {
	t.Parallel()
	dir := portableFolder(t)
	path := filepath.Join(dir, "new", "folder", "file")
	must.Do(t, replacePortable(path, Replacement{Data: []byte("one"), Parents: true}))
	if err := replacePortable(path, Replacement{Data: []byte("again")}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a new file replaced one: %v", err)
	}
	must.Do(t, errors.Join(os.Chmod(path, 0o750), os.Link(path, filepath.Join(dir, "other"))))
	old := must.Get(openPortable(path))(t)
	defer old.Close()
	seen := must.Get(old.Stat())(t)
	must.Do(t, replacePortable(path, Replacement{Data: []byte("two"), Old: old, Seen: seen}))
	got, err := os.ReadFile(path)
	other, err2 := os.ReadFile(filepath.Join(dir, "other"))
	info, err3 := os.Stat(path)
	if err := errors.Join(err, err2, err3); err != nil || string(got) != "two" || string(other) != "one" || info.Mode() != 0o750 {
		t.Errorf("got %q, the other link %q, mode %v, %v", got, other, info.Mode(), err)
	}
	if err := replacePortable(path, Replacement{Data: []byte("three"), Old: old, Seen: seen}); err == nil || !strings.Contains(err.Error(), "read it again") {
		t.Errorf("a file that is another now was replaced: %v", err)
	}
	if err := replacePortable(path, Replacement{Old: old, Seen: seen, Remove: true}); err == nil {
		t.Error("a file that is another now was removed")
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("besides the file there is %v, %v", left, err)
	}
	now := must.Get(openPortable(path))(t)
	defer now.Close()
	err = replacePortable(path, Replacement{Old: now, Remove: true})
	if left, err2 := os.ReadDir(filepath.Dir(path)); err != nil || err2 != nil || len(left) != 0 {
		t.Errorf("after the file was removed there is %v, %v, %v", left, err, err2)
	}
}

// TestPortableOpenLosesNoRace swaps a folder for a link while files are opened.
func TestPortableOpenLosesNoRace(t *testing.T) {
	t.Parallel()
	dir := portableFolder(t)
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	for _, name := range []string{"a", "secret"} {
		must.Do(t, os.Mkdir(at(name), 0o700))
		put(t, at(name, "f"), name)
	}
	done := make(chan error, 1)
	stop := make(chan struct{})
	// Ends with stop.
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			err = errors.Join(os.Rename(at("a"), at("b")), os.Symlink("secret", at("a")), os.Remove(at("a")), os.Rename(at("b"), at("a")))
		}
		done <- err
	}()
	opened := 0
	for range 3000 {
		f, err := openPortable(at("a", "f"))
		if err != nil {
			continue
		}
		b, err := io.ReadAll(f)
		f.Close()
		if opened++; err != nil || string(b) != "a" {
			t.Fatalf("read %q, %v", b, err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of 3000 were opened", opened)
}
