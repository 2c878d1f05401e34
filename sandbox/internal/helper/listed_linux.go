package helper

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// fillListed gives rights where there is no view: Landlock alone decides what a call
// can open. It knows no exceptions, so what is hidden must not lie in what can be
// read; a folder with something hidden in it is taken apart.
func (r ruleset) fillListed(s *Spec, write uint64) error {
	for _, root := range s.Roots {
		add := func(fd int) error { return r.addOpened(fd, root.Path, write) }
		if !root.Writable {
			add = func(fd int) error { return r.addReadable(fd, root.Path, s.Hide) }
		}
		if err := root.with(add); err != nil {
			return err
		}
	}
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := r.add("/dev/"+device, rightsTerminal); err != nil {
			return err
		}
	}
	if err := r.add("/proc/self/exe", rightsRead); err != nil { // which the file tools run in the sandbox
		return err
	}
	for fd := range 3 { // other terminals of the user are not to be written
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
			continue
		}
		if err := r.addOpened(fd, "the terminal", rightsTerminal); err != nil {
			return err
		}
	}
	return nil
}

// with opens the root, which must be the one that was chosen. No link is followed.
func (r Root) with(use func(fd int) error) error {
	fd, err := locate(r.Path)
	if !r.Writable && errors.Is(err, unix.ENOENT) {
		return nil // what is not there needs no right
	}
	if err != nil {
		return stage("open root "+r.Path, err)
	}
	defer unix.Close(fd)
	if err := r.mustBe(fd); err != nil {
		return stage("open root "+r.Path, err)
	}
	return use(fd)
}

// addReadable lets be read what is at path, which fd holds, but not what is hidden.
func (r ruleset) addReadable(fd int, path string, hide []string) error {
	if slices.Contains(hide, path) {
		return nil
	}
	if !slices.ContainsFunc(hide, func(h string) bool { return strings.HasPrefix(h, strings.TrimSuffix(path, "/")+"/") }) {
		return r.addOpened(fd, path, rightsRead)
	}
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrPermission) {
		return nil // nor can the call
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() && !e.Type().IsRegular() {
			continue // a link needs no right of its own
		}
		below := Root{Path: filepath.Join(path, e.Name())}
		err := below.with(func(fd int) error { return r.addReadable(fd, below.Path, hide) })
		if err != nil && !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.EACCES) { // it has become a link meanwhile
			return err
		}
	}
	return nil
}
