package shell_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

// watcher records which files are opened and changed, and restores them.
type watcher struct {
	base    string
	want    map[string]string
	queue   int
	dirs    map[int32]string // by watch
	changed map[string]bool  // since the last reset; absolute
}

const watched = unix.IN_OPEN | unix.IN_CLOSE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO

// newWatcher makes files by path below base: directories end in a slash, "-> " is a link.
func newWatcher(t testing.TB, base string, files map[string]string) *watcher {
	t.Helper()
	queue := must.Get(unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK))(t)
	w := &watcher{base: base, want: files, queue: queue, dirs: make(map[int32]string), changed: make(map[string]bool)}
	for _, name := range slices.Sorted(maps.Keys(w.want)) { // directories come before what is in them
		must.Do(t, w.put(name))
	}
	for name := range w.want {
		dir, is := strings.CutSuffix(name, "/")
		if !is {
			continue
		}
		watch := must.Get(unix.InotifyAddWatch(queue, filepath.Join(base, dir), watched))(t)
		w.dirs[int32(watch)] = filepath.Join(base, dir)
	}
	return w
}

func (w *watcher) close() { unix.Close(w.queue) }

func (w *watcher) reset() error {
	for path := range w.changed {
		name := strings.TrimPrefix(path, w.base+"/")
		if _, dir := w.want[name+"/"]; dir {
			continue // its mode, at most
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if err := w.put(name); err != nil {
			return err
		}
	}
	_, _, err := w.take()
	clear(w.changed)
	return err
}

func (w *watcher) put(name string) error {
	content, wanted := w.want[name]
	path := filepath.Join(w.base, name)
	target, link := strings.CutPrefix(content, "-> ")
	switch {
	case !wanted:
		return nil
	case strings.HasSuffix(name, "/"):
		return os.MkdirAll(path, 0o755)
	case link:
		return os.Symlink(target, path)
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func (w *watcher) take() (read, wrote []string, err error) {
	buffer := make([]byte, 1<<16)
	var closed []string
	for {
		n, err := unix.Read(w.queue, buffer)
		if errors.Is(err, unix.EAGAIN) {
			return slices.DeleteFunc(read, func(path string) bool { return slices.Contains(wrote, path) && !slices.Contains(closed, path) }), wrote, nil
		}
		if err != nil {
			return nil, nil, &fs.PathError{Op: "watch", Path: w.base, Err: err}
		}
		for at := 0; at < n; {
			watch, mask := int32(binary.NativeEndian.Uint32(buffer[at:])), binary.NativeEndian.Uint32(buffer[at+4:])
			length := int(binary.NativeEndian.Uint32(buffer[at+12:]))
			name := strings.TrimRight(string(buffer[at+16:at+16+length]), "\x00")
			at += 16 + length
			path := filepath.Join(w.dirs[watch], name)
			if mask&unix.IN_CLOSE_NOWRITE != 0 {
				closed = append(closed, path)
			}
			switch {
			case mask&unix.IN_Q_OVERFLOW != 0:
				if err := w.suspectAll(); err != nil {
					return nil, nil, err
				}
			case mask&(unix.IN_CLOSE_WRITE|unix.IN_MODIFY|unix.IN_ATTRIB|unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0:
				w.changed[path] = true
				if !slices.Contains(wrote, path) {
					wrote = append(wrote, path)
				}
			case mask&unix.IN_ISDIR != 0 || slices.Contains(read, path):
			default: // opened, or closed without having been written
				read = append(read, path)
			}
		}
	}
}

func (w *watcher) suspectAll() error {
	for name := range w.want {
		w.changed[filepath.Join(w.base, name)] = true
	}
	for _, dir := range w.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			w.changed[filepath.Join(dir, e.Name())] = true
		}
	}
	return nil
}
