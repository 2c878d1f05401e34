package helper

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
)

// pinAll mounts the directories between a writable root and a hidden or protected path on themselves, since a mount
// point cannot be renamed. Otherwise a call could rename such a directory, and expose its contents to later calls and
// file tools under a name that is not hidden, or replace it.
func pinAll(v View) error {
	for _, dir := range WaysTo(v) {
		t, err := take(dir, true)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			continue // nothing is below it
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

var errReplaced = errors.New("it was replaced after the call was judged; send the call again under a new id")

// enter changes to the directory of the command. With DirIs, it must have that identity, and no component may be a
// link.
func (s *Spec) enter() error {
	if s.DirIs == "" {
		return unix.Chdir(s.Dir)
	}
	fd, err := locate(s.Dir)
	if errors.Is(err, unix.ELOOP) {
		return errReplaced
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fchdir(fd); err != nil {
		return err
	}
	if s.own(s.Dir) {
		return nil
	}
	if (Root{Is: s.DirIs}).mustBe(fd) != nil {
		return errReplaced
	}
	return nil
}

// own reports whether the view has a private version of path.
func (s *Spec) own(path string) bool {
	if !s.Namespaces {
		return false
	}
	within := func(dir string) bool { return paths.Within(path, dir) }
	caches := slices.ContainsFunc(s.Caches, func(c Cache) bool { return within(c.Path) })
	hidden := slices.ContainsFunc(s.Hide, within) || Covered(path) && !s.inRoot(path)
	return caches || hidden
}

// WaysTo returns the directories that a view pins.
func WaysTo(v View) []string {
	return waysTo(v.writable(), slices.Concat(v.Hide, v.Protect, v.Masks))
}

// waysTo returns the directories between roots and other paths, outermost first.
func waysTo(roots []Root, list []string) (dirs []string) {
	for _, path := range list {
		for dir := paths.Above(path); dir != "/"; dir = paths.Above(dir) {
			below := func(r Root) bool { return r.Writable && paths.Below(dir, r.Path) }
			if slices.ContainsFunc(roots, below) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs) // a prefix comes before longer paths
	return slices.Compact(dirs)
}
