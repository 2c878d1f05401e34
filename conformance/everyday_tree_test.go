//go:build linux

package conformance

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// tree is a directory that commands change and that is put back as it was.
type tree struct {
	root     string
	original map[string]treeFile // by path below root
	order    []string            // of them, parents first
}

// treeFile is a file, a directory or a symbolic link.
type treeFile struct {
	mode    fs.FileMode
	changed time.Time // a regular file
	data    []byte
	link    string
}

// keepTree reads a directory.
func keepTree(root string) (*tree, error) {
	t := &tree{root: root, original: make(map[string]treeFile)}
	err := t.walk(func(name string, f treeFile) error {
		var err error
		if f.mode.IsRegular() {
			f.data, err = os.ReadFile(filepath.Join(root, name))
		}
		t.original[name] = f
		t.order = append(t.order, name)
		return err
	})
	return t, err
}

// walk visits what is below the root, parents first, without contents.
func (t *tree) walk(visit func(name string, f treeFile) error) error {
	return filepath.WalkDir(t.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == t.root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(t.root, path)
		if err != nil {
			return err
		}
		f := treeFile{mode: info.Mode()}
		switch {
		case f.mode.IsRegular():
			f.changed = info.ModTime()
		case f.mode&fs.ModeSymlink != 0:
			if f.link, err = os.Readlink(path); err != nil {
				return err
			}
		}
		return visit(name, f)
	})
}

// same reports whether a file is as it was, as far as its metadata tell.
func (f treeFile) same(was treeFile, size int64) bool {
	return f.mode == was.mode && f.link == was.link && f.changed.Equal(was.changed) && (!f.mode.IsRegular() || size == int64(len(was.data)))
}

// changes describes what is not as it was, by path: kind, mode, and what it holds.
func (t *tree) changes() (map[string]string, error) {
	found, seen := make(map[string]string), make(map[string]bool)
	err := t.walk(func(name string, f treeFile) error {
		seen[name] = true
		path := filepath.Join(t.root, name)
		info, err := os.Lstat(path)
		if was, ok := t.original[name]; err != nil || ok && f.same(was, info.Size()) {
			return err
		}
		is := f.mode.String() + " " + f.link
		if f.mode.IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			is += fmt.Sprintf("%x", sha256.Sum256(data))
		}
		found[name] = is
		return nil
	})
	for name := range t.original {
		if !seen[name] {
			found[name] = "gone"
		}
	}
	return found, err
}

// restore puts everything back.
func (t *tree) restore() error {
	found, err := t.changes()
	if err != nil {
		return err
	}
	var errs []error
	for name := range found {
		if was, ok := t.original[name]; !ok || !was.mode.IsDir() {
			errs = append(errs, os.RemoveAll(filepath.Join(t.root, name)))
		}
	}
	for _, name := range t.order {
		if found[name] != "" {
			errs = append(errs, t.put(name))
		}
	}
	return errors.Join(errs...)
}

// put makes one file as it was.
func (t *tree) put(name string) error {
	path, f := filepath.Join(t.root, name), t.original[name]
	switch {
	case f.mode.IsDir():
		if info, err := os.Lstat(path); err == nil && !info.IsDir() {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
		return errors.Join(os.MkdirAll(path, 0o700), os.Chmod(path, f.mode.Perm()))
	case f.link != "":
		return os.Symlink(f.link, path)
	}
	err := os.WriteFile(path, f.data, 0o600)
	return errors.Join(err, os.Chmod(path, f.mode.Perm()), os.Chtimes(path, time.Time{}, f.changed))
}

// differing returns the paths at which two changes differ, but for those that may.
func differing(a, b map[string]string, may func(name string) bool) (names []string) {
	for name, is := range a {
		if b[name] != is && !may(name) {
			names = append(names, name)
		}
	}
	for name := range b {
		if a[name] == "" && !may(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
