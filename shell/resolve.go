package shell

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/toold/toold/internal/gitconfig"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/shell/proc"
	"github.com/toold/toold/shell/texts"
)

// Resolver answers questions about the file system. All paths are absolute.
type Resolver interface {
	// Canonical resolves symbolic links as the kernel does, but keeps missing components and everything below /proc.
	// It returns "" on an error.
	Canonical(path string) string
	// Glob returns at most limit names that match a pattern, and whether these are all.
	Glob(pattern string, limit int) (names []string, complete bool)
	// Mode returns the mode of a file without following links.
	Mode(path string) (fs.FileMode, error)
	// GitAlias returns an alias of git's configuration in dir, or "" if there is none.
	GitAlias(dir, name string, env map[string]string) (string, error)
}

type hostResolver struct{}

// Host returns the resolver for the host's file system.
func Host() Resolver { return hostResolver{} }

// Canonical resolves paths like the file tools, so that one rule applies to both.
func (hostResolver) Canonical(path string) string {
	canonical, rest, outside, err := paths.ResolveOutside(path, proc.Dir)
	switch {
	case err != nil:
		return ""
	case outside || rest == "":
		return canonical
	}
	return canonical + "/" + rest
}

func (hostResolver) Glob(pattern string, limit int) ([]string, bool) {
	names := []string{"/"}
	for _, part := range strings.Split(strings.Trim(pattern, "/"), "/") {
		var next []string
		for _, dir := range names {
			next = append(next, matchIn(dir, part, limit-len(next))...)
			if len(next) >= limit {
				return next, false
			}
		}
		names = next
	}
	return names, true
}

func matchIn(dir, part string, limit int) []string {
	if !strings.ContainsAny(part, `*?[\`) {
		path := filepath.Join(dir, part)
		if _, err := os.Lstat(path); err != nil {
			return nil
		}
		return []string{path}
	}
	part = texts.Widened(part)
	f, err := os.Open(strings.TrimSuffix(dir, "/") + "/") // a pipe would block
	if err != nil {
		return nil
	}
	defer f.Close()
	all, _ := f.Readdirnames(20 * maxGlob)
	sort.Strings(all)
	var out []string
	for _, name := range all {
		if strings.HasPrefix(name, ".") && !strings.HasPrefix(part, ".") {
			continue
		}
		if ok, err := filepath.Match(part, name); (ok || err != nil) && len(out) < limit {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out
}

func (hostResolver) Mode(path string) (fs.FileMode, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

func (hostResolver) GitAlias(dir, name string, env map[string]string) (string, error) {
	return gitconfig.Alias(dir, name, env)
}

func (w *walker) resolve(path string) string {
	canonical, ok := w.canonical[path]
	if ok || len(path) > maxPath {
		return canonical
	}
	if w.steps -= 3; w.steps <= 0 {
		return ""
	}
	canonical = w.follow(path)
	w.canonical[path] = canonical
	return canonical
}

// maxPath is PATH_MAX of limits.h(0p), in bytes.
const maxPath = 4096

func (w *walker) follow(path string) string {
	n := strings.Count(path, "/")
	w.steps -= n/2 + n*n>>9
	return w.resolver.Canonical(path)
}

func (w *walker) exists(path string) bool {
	_, err := w.resolver.Mode(path)
	return err == nil
}

// isDir reports whether a path is a directory with at least these permissions.
func (w *walker) isDir(path string, permitted fs.FileMode) bool {
	mode, err := w.resolver.Mode(w.resolve(path))
	return err == nil && mode.IsDir() && mode&permitted == permitted
}

// isFile reports whether a canonical path is certainly no directory.
func (w *walker) isFile(path string) bool {
	mode, err := w.resolver.Mode(path)
	missing := path != "" && errors.Is(err, fs.ErrNotExist)
	return missing || err == nil && mode&(fs.ModeDir|fs.ModeSymlink) == 0
}
