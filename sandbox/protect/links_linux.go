package protect

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// mostLinks is the kernel's limit of links in one path (path_resolution(7)).
const mostLinks = 40

// real resolves a protected path in a root, and returns "" if it leads outside. It records what a call could change
// to redirect the path: links, and missing components. The path is below known, which contains neither. named means
// that path is watched.
func (w *Watcher) real(known, path string, named bool) string {
	at, ahead := cmp.Or(known, "/"), parts(path[len(known):])
	for links := 0; len(ahead) > 0; {
		next := filepath.Join(at, ahead[0])
		in, err := w.lstat(next)
		switch {
		case err == unix.EACCES && w.inRoot(next):
			return filepath.Join(append([]string{next}, ahead[1:]...)...)
		case err != nil && (links > 0 || !named):
			w.misses(next, filepath.Join(append([]string{next}, ahead[1:]...)...))
			return ""
		case err != nil:
			return ""
		case in.Mode != fs.ModeSymlink:
			at, ahead = next, ahead[1:]
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > mostLinks {
			return ""
		}
		if w.inRoot(next) {
			w.links[next] = linkOf(in)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		ahead = append(parts(target), ahead[1:]...)
	}
	if !w.inRoot(at) {
		return ""
	}
	return at
}

// leads reports whether a path is on the way to something in existing, or whether existing is outdated.
func (w *Watcher) leads(path string) bool {
	if w.existing == nil {
		return true
	}
	_, found := slices.BinarySearch(w.ways, path)
	return found || w.passes(path)
}

func (w *Watcher) passes(dir string) bool {
	i, _ := slices.BinarySearch(w.ways, dir+"/")
	return i < len(w.ways) && strings.HasPrefix(w.ways[i], dir+"/")
}

// isNoted reports whether links contains the entry of a directory with this name, or may contain something below it.
func (w *Watcher) isNoted(f *directory, name string) bool {
	if len(w.links) == 0 {
		return false
	}
	path := f.path() + "/" + name
	_, noted := w.links[path]
	return noted || w.passes(path)
}

func (w *Watcher) ledTo(path string) string {
	for _, led := range w.look() {
		if path == led || strings.HasPrefix(path, led+"/") {
			return led
		}
	}
	return ""
}

// parts returns the components of a path. It keeps "..", which is relative to the target of a link.
func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// misses records that a protected path resolves to end, and that next is its first missing component.
func (w *Watcher) misses(next, end string) {
	for _, path := range []string{next, end} {
		if w.inRoot(path) {
			w.links[path] = link{}
		}
	}
}

// astray reports whether a new entry redirects a protected name: it replaces a link, is the target of a link, or is a
// link on the way there.
func (w *Watcher) astray(f *directory, name string, mode fs.FileMode) bool {
	path := f.path() + "/" + name
	was, noted := w.links[path]
	switch {
	case !noted:
		return mode&fs.ModeSymlink != 0 && w.linksBelow(path)
	case was != (link{}) || !mode.IsDir():
		return true
	}
	return !w.linksBelow(path) // otherwise it is a directory on the way
}

func (w *Watcher) linksBelow(dir string) bool {
	for path := range w.links {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// elsewhere lists what git uses outside of its directory: what its configuration names, and the targets of links in
// hooks.
func (w *Watcher) elsewhere(f *directory, dir string) (list []string) {
	if !f.isGit() || w.ownToSome(f) { // a call's own is checked when the call ends
		return nil
	}
	hooks, err := os.ReadDir(dir + "/hooks")
	for _, e := range hooks {
		if err == nil && e.Type()&os.ModeSymlink != 0 {
			list = append(list, dir+"/hooks/"+e.Name())
		}
	}
	work := dir
	if f.kind == gitDir {
		work = filepath.Dir(dir)
	}
	return append(list, w.configured(dir, work)...)
}

// mostIncluded limits the included configurations, which may include themselves.
const mostIncluded = 50

// configured lists what the configuration of a git directory and its includes name. Hooks are relative to work, or to
// the configured work tree.
func (w *Watcher) configured(dir, work string) (list []string) {
	configs := []string{dir + "/config"}
	for i := 0; i < len(configs); i++ {
		_, _ = w.lstat(configs[i])
		text, err := readText(configs[i])
		if err != nil {
			continue
		}
		hooks, worktree, included := named(text)
		if worktree != "" {
			work = nofollow.Against(dir, worktree)
		}
		if hooks != "" {
			list = append(list, nofollow.Against(work, hooks))
		}
		for _, path := range included {
			if path = nofollow.Against(filepath.Dir(configs[i]), path); len(configs) <= mostIncluded && !slices.Contains(configs, path) {
				configs = append(configs, path)
			}
		}
	}
	return append(list, configs[1:]...)
}
