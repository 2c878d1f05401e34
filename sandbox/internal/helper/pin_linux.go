package helper

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// pinAll fastens the folders on the way from a writable root to a hidden or
// protected path, each by a mount of itself: what is a mount cannot be renamed. A
// call could otherwise rename such a folder and leave what is in it under a name
// that nobody hides, for later calls and for the file tools, or put another
// folder in its place.
func pinAll(roots []Root, paths []string) error {
	for _, dir := range waysTo(roots, paths) {
		t, err := take(dir, true)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			continue // then there is nothing below it
		}
		if err == nil {
			err = t.attach()
		}
		if err != nil {
			return stage("pin "+dir, err)
		}
	}
	return nil
}

// waysTo lists the folders between writable roots and the paths, each once and
// after those above it.
func waysTo(roots []Root, paths []string) (dirs []string) {
	for _, path := range paths {
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			below := func(r Root) bool { return r.Writable && strings.HasPrefix(dir, strings.TrimSuffix(r.Path, "/")+"/") }
			if slices.ContainsFunc(roots, below) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs) // a prefix comes before what it begins
	return slices.Compact(dirs)
}
