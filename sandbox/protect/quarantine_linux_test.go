package protect

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// quarantined takes away files of a folder, and returns their items by name.
func quarantined(t *testing.T, names ...string) (dir, quarantine string, items map[string]Item) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	quarantine, items = filepath.Join(dir, "quarantine"), map[string]Item{}
	for _, name := range names {
		put(t, filepath.Join(dir, "ws", name))
		at, err := openPath(filepath.Dir(filepath.Join(dir, "ws", name)), unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := takeAway(at, filepath.Base(name), filepath.Join(dir, "ws", name), quarantine, allow()); err != nil {
			t.Fatal(err)
		}
		unix.Close(at)
	}
	list, err := Items(quarantine)
	if err != nil || len(list) != len(names) {
		t.Fatalf("%v: %v", list, err)
	}
	for _, i := range list {
		items[filepath.Base(i.From)] = i
	}
	return dir, quarantine, items
}

func TestWhatWasTakenAwayCanBePutBack(t *testing.T) {
	t.Parallel()
	dir, quarantine, items := quarantined(t, ".envrc", "other")
	path, err := Restore(quarantine, items[".envrc"].ID)
	if err != nil || path != filepath.Join(dir, "ws/.envrc") {
		t.Fatalf("%s: %v", path, err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "x" {
		t.Errorf("%q: %v", b, err)
	}
	if list, err := Items(quarantine); err != nil || len(list) != 1 || list[0].Bytes == 0 {
		t.Errorf("%v: %v", list, err)
	}
}

// Who can write the workspace must not choose what is overwritten, nor where.
func TestNothingIsReplacedOrFollowedWhenAnItemIsPutBack(t *testing.T) {
	t.Parallel()
	dir, quarantine, items := quarantined(t, "a", "sub/b")
	put(t, filepath.Join(dir, "ws/a"))
	if err := os.Remove(filepath.Join(dir, "ws/sub")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "ws/sub")); err != nil {
		t.Fatal(err)
	}
	for name, i := range items {
		if path, err := Restore(quarantine, i.ID); err == nil {
			t.Errorf("%s was put back to %s", name, path)
		}
		if _, err := os.Lstat(i.Kept); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"", "..", "../ws", "20260101T000000.000Z-NONE", "20260101T000000.000Z-/../../ws"} {
		if _, err := Restore(quarantine, id); err == nil {
			t.Errorf("%q was put back", id)
		}
		if err := Discard(quarantine, id); err == nil {
			t.Errorf("%q was removed", id)
		}
	}
}

func TestAQuarantineDoesNotGrowWithoutBound(t *testing.T) {
	t.Parallel()
	_, quarantine, items := quarantined(t, "a", "b", "c")
	each, oldest := items["b"].Bytes, filepath.Join(quarantine, "20260101T000000.000Z-OLDEST")
	if err := os.Rename(filepath.Dir(items["a"].Kept), oldest); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(oldest, "closed")
	put(t, filepath.Join(closed, "in/file"))
	for _, path := range []string{closed + "/in", closed} {
		if err := unix.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	note := filepath.Join(quarantine, "unseen-123")
	put(t, note)
	left, err := Prune(quarantine, 365*24*time.Hour, 2*each)
	if err != nil || left > 2*each || left == 0 {
		t.Fatalf("%d bytes are left of %d: %v", left, 3*each, err)
	}
	list, err := Items(quarantine)
	if _, gone := os.Lstat(oldest); err != nil || len(list) != 2 || gone == nil {
		t.Errorf("the oldest stayed: %v, %v", list, err)
	}
	if left, err = Prune(quarantine, 0, 1<<30); err != nil || left != 0 {
		t.Errorf("%d bytes stay although their time is over: %v", left, err)
	}
	if _, err := os.Lstat(note); err != nil {
		t.Errorf("what is no item is gone: %v", err)
	}
}
