package bash

import (
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/toold/toold/sandbox"
)

// Resolver tells what the file system says about paths. All paths are absolute.
// Analysis uses nothing else of the machine, so tests can put their own tree in
// its place.
type Resolver interface {
	// Canonical resolves the symbolic links of a path component by component, as
	// the kernel does: "link/.." is the parent of the link's target. What does
	// not exist stays as it is. "" means that it cannot be resolved.
	Canonical(path string) string
	// Glob lists what a pattern matches now, at most limit names. Complete is
	// false when there are more.
	Glob(pattern string, limit int) (names []string, complete bool)
	// IsDir reports whether the path is a folder now.
	IsDir(path string) bool
	// Exists reports whether something has this path now, a dangling link too.
	Exists(path string) bool
}

// hostResolver asks the host's file system.
type hostResolver struct{}

// Canonical resolves path as the file tools do, so that one rule binds both.
func (hostResolver) Canonical(path string) string {
	canonical, err := sandbox.Resolve(path)
	if err != nil {
		return ""
	}
	return canonical
}

// Glob expands a pattern; see Resolver.
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

// matchIn lists what one component of a pattern matches in a folder. Unlike
// filepath.Match, bash's * does not match a leading dot.
func matchIn(dir, part string, limit int) []string {
	if !strings.ContainsAny(part, `*?[\`) {
		path := filepath.Join(dir, part)
		if _, err := os.Lstat(path); err != nil {
			return nil
		}
		return []string{path}
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	// More names than anybody writes a glob for are cut off: see Glob.
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

// IsDir reports whether path is a folder; see Resolver.
func (hostResolver) IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Exists reports whether path exists; see Resolver.
func (hostResolver) Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
