// Package paths compares absolute paths and resolves their symbolic links. It opens nothing: the caller must verify
// that a path still has the same meaning when it is used.
package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// mostLinks is the kernel's limit (path_resolution(7)).
const mostLinks = 40

// Within reports whether a path is root or below it, by components. Both must be absolute and clean. Nothing is
// within "".
func Within(path, root string) bool {
	return path == root && root != "" || Below(path, root)
}

// Below reports whether a path is below a directory. Both must be absolute and clean.
func Below(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	isBelow := ok && len(rest) > 1 && rest[0] == '/'
	return isBelow && dir != ""
}

// Above is filepath.Dir for an absolute and clean path. It is faster, since it only searches for the last slash.
func Above(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// Up returns a clean path and the directories above it, the nearest first.
func Up(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(dir) {
			above := path.Dir(dir)
			if above == dir {
				return
			}
			dir = above
		}
	}
}

// Resolve resolves every symbolic link as the kernel does, component by component. It keeps components that do not
// exist; "." and ".." among them are removed lexically.
func Resolve(path string) (string, error) {
	canonical, _, err := ResolveLinks(path)
	return canonical, err
}

// Existing is Resolve for a path that must exist.
func Existing(path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	return Resolve(path)
}

// ResolveLinks is like Resolve, and also returns the canonical paths of the links that it followed.
func ResolveLinks(path string) (canonical string, links []string, err error) {
	canonical, _, links, err = ResolveUntil(path)
	return canonical, links, err
}

// ResolveOutside is Resolve, but stops when it reaches dir: canonical is dir then, and rest is what
// was not resolved, which may lead out again by "..". outside reports that it did not reach dir.
func ResolveOutside(path, dir string) (canonical, rest string, outside bool, err error) {
	canonical, rest, _, err = ResolveUntil(path, dir)
	return canonical, rest, canonical != dir, err
}

// ResolveUntil is ResolveLinks, but looks at nothing below one of the stops: when it reaches one, canonical is that, and
// rest is what was not resolved.
func ResolveUntil(path string, stops ...string) (canonical, rest string, links []string, err error) {
	if !strings.HasPrefix(path, "/") {
		return "", "", nil, fmt.Errorf("cannot resolve %q: the path is not absolute", path)
	}
	done := "/"
	rest = path[1:]
	for rest != "" && !slices.Contains(stops, done) {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			done = Above(done)
			continue
		}
		// A piece of a clean path without links costs no memory.
		next := path[:max(0, len(path)-len(rest))]
		if next = strings.TrimRight(next, "/"); len(links) > 0 || len(next) != len(strings.TrimSuffix(done, "/"))+1+len(name) {
			next = strings.TrimSuffix(done, "/") + "/" + name // Join is slower
		}
		target, err := readLink(next)
		switch {
		case err != nil:
			return "", "", nil, fmt.Errorf("cannot resolve %q: %w", path, err)
		case target == "":
			done = next
			continue
		case len(links) == mostLinks:
			return "", "", nil, fmt.Errorf("cannot resolve %q: more than %d symbolic links", path, mostLinks)
		}
		links = append(links, next)
		rest = target + "/" + rest
		if strings.HasPrefix(target, "/") {
			done, rest = "/", rest[1:]
		}
	}
	return done, rest, links, nil
}

// Bare removes the paths from an error of package os, because not everyone who reads the error may see them. err may be
// nil.
func Bare(err error) error {
	if at, is := errors.AsType[*fs.PathError](err); is {
		return at.Err
	}
	if between, is := errors.AsType[*os.LinkError](err); is {
		return between.Err
	}
	return err
}

// readLink returns the target of a symbolic link, or "" for anything else.
func readLink(path string) (string, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return "", nil
	case err != nil:
		return "", err
	case info.Mode()&fs.ModeSymlink == 0:
		return "", nil
	}
	return os.Readlink(path)
}
