package fileops

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for name, content := range files {
		must.Do(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o644))
	}
	return root
}

func holds(t *testing.T, root string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != len(want) {
		t.Errorf("the folder holds %v, %v; want %v", entries, err, want)
	}
	for name, content := range want {
		if b, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(b) != content {
			t.Errorf("%s holds %q, %v; want %q", name, b, err, content)
		}
	}
}

func named(t *testing.T, c Change, content string) *PendingFile {
	t.Helper()
	dir := must.Get(openDir(filepath.Dir(c.Path), false))(t)
	d := &PendingFile{change: c, dir: dir}
	w, err := d.createNamed()
	if err == nil {
		err = d.fill(w, strings.NewReader(content))
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func old(t *testing.T, path string) *os.File {
	t.Helper()
	fd := must.Get(Open(path))(t)
	f := os.NewFile(uintptr(fd), path)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestADraftWithANameIsPutInItsPlaceAsOneWithout(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"f": "old", "there": "old"})
	at := func(name string) string { return filepath.Join(root, name) }
	for _, step := range []struct {
		change Change
		want   error
	}{
		{Change{Path: at("new")}, nil},
		{Change{Path: at("there")}, fs.ErrExist},
		{Change{Path: at("f"), Old: old(t, at("f"))}, nil},
		{Change{Path: at("there"), Old: old(t, at("f"))}, ErrChanged},
	} {
		d := named(t, step.change, "new")
		if err := d.Commit(); !errors.Is(err, step.want) {
			t.Errorf("%s: %v; want %v", step.change.Path, err, step.want)
		}
		d.Discard()
		d.Discard()
	}
	named(t, Change{Path: at("never")}, "new").Discard()
	holds(t, root, map[string]string{"f": "new", "new": "new", "there": "old"})
}

func TestNobodyFindsADraftBeforeItIsCommitted(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"f": "old"})
	path := filepath.Join(root, "f")
	d := must.Get(Begin(Change{Path: path, Old: old(t, path)}, strings.NewReader("new")))(t)
	defer d.Discard()
	if d.name != "" {
		t.Skip("the file system has no files without a name")
	}
	holds(t, root, map[string]string{"f": "old"})
	must.Do(t, d.Commit())
	holds(t, root, map[string]string{"f": "new"})
}

func serving(t *testing.T) (*Conn, <-chan struct{}) {
	t.Helper()
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	gone := make(chan struct{})
	// Ends when the connection is cut.
	go func() {
		defer close(gone)
		(&handler{end: end{socket: fds[1]}}).serve()
	}()
	c := &Conn{end{socket: fds[0]}}
	t.Cleanup(func() { c.Cut(); <-gone; c.Close() })
	return c, gone
}

func TestErrorsAreToldAsTheyAre(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"f": "old"})
	c, _ := serving(t)
	for path, want := range map[string]error{"none": fs.ErrNotExist, "f/x": unix.ENOTDIR, strings.Repeat("n", 256): unix.ENAMETOOLONG, strings.Repeat("n/", 4000): unix.ENAMETOOLONG} {
		_, here := Open(filepath.Join(root, path))
		if _, err := c.Open(filepath.Join(root, path), nil); !errors.Is(err, want) || !errors.Is(here, want) {
			t.Errorf("%.20s: %v, here %v", path, err, here)
		}
	}
	if _, err := c.Open(root, nil); err == nil || err.Error() != "it is a directory, not a regular file" {
		t.Errorf("a folder: %v", err)
	}
	content := old(t, filepath.Join(root, "f"))
	change := Change{Path: filepath.Join(root, "f"), Old: content, Seen: &State{1, 2}}
	if _, err := c.Begin(change, content); !errors.Is(err, ErrChanged) || errors.Is(err, ErrLost) {
		t.Errorf("changed: %v", err)
	}
}

func TestWhatWasBegunIsGoneWithTheConnection(t *testing.T) {
	t.Parallel()
	root := folder(t, map[string]string{"content": "new"})
	content := old(t, filepath.Join(root, "content"))
	c, gone := serving(t)
	f := must.Get(c.Begin(Change{Path: filepath.Join(root, "f")}, content))(t)
	f.Close()
	c.Cut()
	<-gone
	holds(t, root, map[string]string{"content": "new"})
	if err := c.Commit(); !errors.Is(err, ErrLost) {
		t.Errorf("commit: %v", err)
	}
}

func TestWhoDoesNotKeepToTheProtocolIsNotServed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(folder(t, map[string]string{"f": ""}), "f")
	f := old(t, path)
	for name, packet := range map[string][]byte{
		"short":                  []byte("o"),
		"long":                   append(question{kind: askOpen, path: path}.encode(), make([]byte, mostBytes)...),
		"unknown":                question{kind: 'x', path: path}.encode(),
		"commit before begin":    question{kind: askCommit}.encode(),
		"a file too many":        question{kind: askOpen, path: path}.encode(),
		"begin without old file": question{kind: askBegin, path: path, old: true}.encode(),
	} {
		c, gone := serving(t)
		must.Do(t, c.send(packet, int(f.Fd())))
		<-gone
		if _, err := c.Open(path, nil); !errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add(question{kind: askBegin, parents: true, old: true, seen: &State{1 << 60, -1}, path: "/a\x00b"}.encode())
	f.Add([]byte("c"))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := decodeQuestion(b)
		if err != nil {
			return
		}
		again, err := decodeQuestion(q.encode())
		if err != nil || again.kind != q.kind || again.path != q.path || again.old != q.old || again.parents != q.parents ||
			(again.seen == nil) != (q.seen == nil) || q.seen != nil && *again.seen != *q.seen {
			t.Errorf("%+v became %+v, %v", q, again, err)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add(answerOf(nil))
	f.Add(answerOf(ErrUnsynced))
	f.Add(answerOf(unix.ENOENT))
	f.Fuzz(func(t *testing.T, b []byte) {
		err := errorOf(b)
		if again := errorOf(answerOf(err)); (err == nil) != (again == nil) || errors.Is(err, ErrChanged) != errors.Is(again, ErrChanged) {
			t.Errorf("%v became %v", err, again)
		}
	})
}
