package quarantine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/rerun"
	"github.com/toold/toold/sandbox/quarantine"
)

// quarantined takes away files of a directory, and returns their items by name.
func quarantined(t *testing.T, names ...string) (dir, store string, items map[string]quarantine.Item) {
	t.Helper()
	dir = must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	store, items = filepath.Join(dir, "quarantine"), map[string]quarantine.Item{}
	for _, name := range names {
		put(t, filepath.Join(dir, "ws", name))
		take(t, store, filepath.Join(dir, "ws", name), filepath.Join(dir, "ws", name))
	}
	list, err := quarantine.Items(store)
	if err != nil || len(list) != len(names) {
		t.Fatalf("%v: %v", list, err)
	}
	for _, i := range list {
		items[filepath.Base(i.From)] = i
	}
	return dir, store, items
}

// take takes away path, as if it were from, and returns the path of the copy.
func take(t *testing.T, store, path, from string) string {
	t.Helper()
	at := must.Get(unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))(t)
	defer unix.Close(at)
	return must.Get(quarantine.NewBatch(store).Take(at, filepath.Base(path), from))(t)
}

func TestWhatWasTakenAwayCanBePutBack(t *testing.T) {
	t.Parallel()
	dir, store, items := quarantined(t, ".envrc", "other")
	path, err := quarantine.Restore(store, items[".envrc"].ID)
	if err != nil || path != filepath.Join(dir, "ws/.envrc") {
		t.Fatalf("%s: %v", path, err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "x" {
		t.Errorf("%q: %v", b, err)
	}
	if list, err := quarantine.Items(store); err != nil || len(list) != 1 || list[0].Bytes == 0 {
		t.Errorf("%v: %v", list, err)
	}
}

// TestACopyThatWasChangedIsFound edits the files of an item in several ways.
func TestACopyThatWasChangedIsFound(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(cell string) error{
		"the text": func(cell string) error { return os.WriteFile(cell+"/taken/sub/\xff", []byte("y"), 0o600) },
		"the path": func(cell string) error { return os.WriteFile(cell+"/taken-from", []byte("/etc/passwd\n"), 0o600) },
		"one more": func(cell string) error { return os.WriteFile(cell+"/not-kept", nil, 0o600) },
		"one less": func(cell string) error { return os.Remove(cell + "/taken/sub/\xff") },
		"a link": func(cell string) error {
			return errors.Join(os.Remove(cell+"/taken/sub/\xff"), os.Symlink("/", cell+"/taken/sub/\xff"))
		},
		"the name":  func(cell string) error { return os.Rename(cell, cell[:len(cell)-1]+"-") },
		"shortened": func(cell string) error { return os.Rename(cell, cell[:len(cell)-20]) },
	} {
		dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
		store := filepath.Join(dir, "quarantine")
		put(t, filepath.Join(dir, "ws/a/sub/\xff"))
		kept := take(t, store, dir+"/ws/a", dir+"/ws/a")
		items := must.Get(quarantine.Items(store))(t)
		if len(items) != 1 || items[0].Kept != kept || items[0].Check() != nil {
			t.Fatalf("%s: %v", kept, items)
		}
		must.Do(t, edit(filepath.Dir(kept)))
		items = must.Get(quarantine.Items(store))(t)
		if err := items[0].Check(); !errors.Is(err, quarantine.ErrChanged) && !errors.Is(err, quarantine.ErrPartial) {
			t.Errorf("%s: got %v", name, err)
		}
		if path, err := quarantine.Restore(store, items[0].ID); err == nil {
			t.Errorf("%s: put back to %s", name, path)
		}
	}
}

// A call that can write the workspace must not choose what is overwritten, nor where.
func TestNothingIsReplacedOrFollowedWhenAnItemIsPutBack(t *testing.T) {
	t.Parallel()
	dir, store, items := quarantined(t, "a", "sub/b")
	put(t, filepath.Join(dir, "ws/a"))
	must.Do(t, os.Remove(filepath.Join(dir, "ws/sub")))
	must.Do(t, os.Symlink(dir, filepath.Join(dir, "ws/sub")))
	for name, i := range items {
		if path, err := quarantine.Restore(store, i.ID); err == nil {
			t.Errorf("%s was put back to %s", name, path)
		}
		if _, err := os.Lstat(i.Kept); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"", "..", "../ws", "20260101T000000.000Z-NONE", "20260101T000000.000Z-/../../ws"} {
		if _, err := quarantine.Restore(store, id); err == nil {
			t.Errorf("%q was put back", id)
		}
		if err := quarantine.Discard(store, id); err == nil {
			t.Errorf("%q was removed", id)
		}
	}
}

func TestAnItemIsRemovedWithWhatIsClosedInIt(t *testing.T) {
	t.Parallel()
	_, store, items := quarantined(t, "a", "b", "c")
	oldest := filepath.Join(store, "20260101T000000.000Z-OLDEST")
	must.Do(t, os.Rename(filepath.Dir(items["a"].Kept), oldest))
	closed := filepath.Join(oldest, "closed")
	put(t, filepath.Join(closed, "in/file"))
	for _, path := range []string{closed + "/in", closed} {
		must.Do(t, unix.Chmod(path, 0))
	}
	note := filepath.Join(store, "unseen-123")
	put(t, note)
	must.Do(t, quarantine.Discard(store, filepath.Base(oldest)))
	list, err := quarantine.Items(store)
	if _, gone := os.Lstat(oldest); err != nil || len(list) != 2 || gone == nil {
		t.Errorf("it stayed: %v, %v", list, err)
	}
	if _, err := os.Lstat(note); err != nil {
		t.Errorf("what is no item is gone: %v", err)
	}
}

// put makes a file and the directories above it.
func put(t *testing.T, path string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte("x"), 0o600))
}

func TestRemovingAnItemFollowsNoLink(t *testing.T) {
	t.Parallel()
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	store, outside := filepath.Join(base, "quarantine"), filepath.Join(base, "outside")
	tree := filepath.Join(store, "20260101T000000.000Z-OLD/taken/deep")
	for _, dir := range []string{outside + "/sub", tree} {
		must.Do(t, os.MkdirAll(dir, 0o755))
	}
	for link, to := range map[string]string{"a": outside, "z": outside + "/sub", "0": "/"} {
		must.Do(t, os.Symlink(to, filepath.Join(tree, link)))
	}
	must.Do(t, os.Chmod(tree, 0))
	if err := quarantine.Discard(store, "20260101T000000.000Z-OLD"); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{outside, outside + "/sub"} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	if list, err := os.ReadDir(store); err != nil || len(list) != 0 {
		t.Errorf("%v is left: %v", list, err)
	}
}

// A part of a file must not pass as the file.
func TestACopyForWhichThereWasNoRoomIsNotPutBack(t *testing.T) {
	t.Parallel()
	store := rerun.Mounting(t)
	if store == "" {
		return
	}
	must.Do(t, unix.Mount("none", store, "tmpfs", 0, "size=64k"))
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, name := range []string{"file", "dir/sub/file"} {
		put(t, filepath.Join(dir, name))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), make([]byte, 100_000), 0o600))
		first, _, _ := strings.Cut(name, "/")
		at := must.Get(unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))(t)
		kept, err := quarantine.NewBatch(store).Take(at, first, filepath.Join(dir, first))
		unix.Close(at)
		if !errors.Is(err, quarantine.ErrNotKept) || !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s: no error says that the disk is full: %v", name, err)
		}
		items := must.Get(quarantine.Items(store))(t)
		if len(items) != 1 || items[0].Kept != kept || !errors.Is(items[0].Check(), quarantine.ErrPartial) {
			t.Fatalf("%s: a part in %s is listed as %v", name, kept, items)
		}
		if path, err := quarantine.Restore(store, items[0].ID); err == nil {
			t.Errorf("a part was put back to %s", path)
		}
		must.Do(t, quarantine.Discard(store, items[0].ID))
	}
}

// What is left of a copy that a person removes is not taken for one that somebody changed.
func TestARemovalThatDoesNotEndLeavesNoChangedCopy(t *testing.T) {
	t.Parallel()
	dir := rerun.Mounting(t)
	if dir == "" {
		return
	}
	must.Do(t, unix.Mount("none", dir, "tmpfs", 0, ""))
	store := filepath.Join(dir, "quarantine")
	put(t, dir+"/ws/a/sub/file")
	kept := take(t, store, dir+"/ws/a", dir+"/ws/a")
	must.Do(t, unix.Mount("none", kept+"/sub", "tmpfs", 0, "")) // cannot be removed
	if err := quarantine.Discard(store, filepath.Base(filepath.Dir(kept))); err == nil {
		t.Fatal("a mount point was removed")
	}
	items := must.Get(quarantine.Items(store))(t)
	if len(items) != 1 || !errors.Is(items[0].Check(), quarantine.ErrPartial) {
		t.Errorf("left are %v", items)
	}
}

// TestAnItemThatFindsNoRoomStaysWhole puts items back to another file system, which is full at first.
func TestAnItemThatFindsNoRoomStaysWhole(t *testing.T) {
	t.Parallel()
	ws := rerun.Mounting(t)
	if ws == "" {
		return
	}
	must.Do(t, unix.Mount("none", ws, "tmpfs", 0, "size=64k"))
	large := strings.Repeat("x", 100_000)
	for _, name := range []string{"file", "dir", strings.Repeat("n", 255)} {
		store := t.TempDir()
		from := filepath.Join(t.TempDir(), name)
		file := from
		if name == "dir" {
			file = from + "/sub/large"
		}
		put(t, file)
		must.Do(t, os.WriteFile(file, []byte(large), 0o600))
		id := filepath.Base(filepath.Dir(take(t, store, from, filepath.Join(ws, name))))
		if _, err := quarantine.Restore(store, id); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("on a full disk: %v", err)
		}
		if left, err := os.ReadDir(ws); err != nil || len(left) != 0 {
			t.Errorf("a part of %.9s is left: %v, %v", name, left, err)
		}
		must.Do(t, unix.Mount("none", ws, "tmpfs", unix.MS_REMOUNT, "size=1m"))
		if _, err := quarantine.Restore(store, id); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(filepath.Join(ws, name) + strings.TrimPrefix(file, from)); err != nil || string(b) != large {
			t.Errorf("put back are %d bytes, %v", len(b), err)
		}
		if left, err := os.ReadDir(ws); err != nil || len(left) != 1 {
			t.Errorf("beside %.9s is %v, %v", name, left, err)
		}
		must.Do(t, errors.Join(os.RemoveAll(filepath.Join(ws, name)), unix.Mount("none", ws, "tmpfs", unix.MS_REMOUNT, "size=64k")))
	}
}
