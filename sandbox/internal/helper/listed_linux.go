package helper

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
)

// fillListed grants rights without a view: only Landlock confines the call. It has no exceptions, so nothing hidden
// may be below a readable directory. Such a directory is granted entry by entry.
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
	for _, device := range devices {
		if err := r.add("/dev/"+device, rightsTerminal); err != nil {
			return err
		}
	}
	if err := r.add("/proc/self/exe", rightsRead); err != nil { // run by the file tools in the sandbox
		return err
	}
	for fd := range 3 { // the user's other terminals must not be writable
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

// with opens the root without following links, and verifies its identity.
func (r Root) with(use func(fd int) error) error {
	fd, err := locate(r.Path)
	if !r.Writable && errors.Is(err, unix.ENOENT) {
		return nil // a missing path needs no right
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

// addReadable grants reading path, which fd refers to, except for what is hidden.
func (r ruleset) addReadable(fd int, path string, hide []string) error {
	if slices.Contains(hide, path) {
		return nil
	}
	if !slices.ContainsFunc(hide, func(h string) bool { return paths.Below(h, path) }) {
		return r.addOpened(fd, path, rightsRead)
	}
	entries, err := os.ReadDir(path)
	if errors.Is(err, os.ErrPermission) {
		return nil // the call cannot open it either
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() && !e.Type().IsRegular() {
			continue // a link needs no right of its own
		}
		below := Root{Path: strings.TrimSuffix(path, "/") + "/" + e.Name()}
		err := below.with(func(fd int) error { return r.addReadable(fd, below.Path, hide) })
		if err != nil && !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.EACCES) { // it has become a link
			return err
		}
	}
	return nil
}
