package guard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mostLinks is how many links the kernel follows on one way (path_resolution(7)).
const mostLinks = 40

// real is where a protected path leads to, if that is in a root: what is outside
// cannot be changed in any case. "" = nowhere. It takes notice of what a call could
// make or replace so that it leads elsewhere: the links on the way, and what is missing
// behind them. named tells that the path itself is watched for.
func (g *Guard) real(path string, named bool) string {
	at, ahead := "/", parts(path)
	for links := 0; len(ahead) > 0; {
		next := filepath.Join(at, ahead[0])
		info, err := os.Lstat(next)
		switch {
		case err != nil && (links > 0 || !named):
			g.misses(next, filepath.Join(append([]string{next}, ahead[1:]...)...))
			return ""
		case err != nil:
			return ""
		case info.Mode()&os.ModeSymlink == 0:
			at, ahead = next, ahead[1:]
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > mostLinks {
			return ""
		}
		if g.inRoot(next) {
			g.links[next] = linkOf(info)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		ahead = append(parts(target), ahead[1:]...)
	}
	if !g.inRoot(at) {
		return ""
	}
	return at
}

// leads reports whether a path, or one in it, is on the way to what stands in existing.
func (g *Guard) leads(path string) bool {
	below := func(other string) bool { return other == path || strings.HasPrefix(other, path+"/") }
	if slices.ContainsFunc(g.existing, below) {
		return true
	}
	for noted := range g.links {
		if below(noted) {
			return true
		}
	}
	return false
}

// ledTo is what of existing a path is or lies in.
func (g *Guard) ledTo(path string) string {
	for _, led := range g.look() {
		if path == led || strings.HasPrefix(path, led+"/") {
			return led
		}
	}
	return ""
}

// parts are the names of a path. Those of ".." stay: they count from where a link leads.
func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// misses notes that a protected path leads to end, and that the first of the way
// that is missing is next.
func (g *Guard) misses(next, end string) {
	for _, path := range []string{next, end} {
		if g.inRoot(path) {
			g.links[path] = link{}
		}
	}
}

// astray reports whether what has come at a path leads a protected name elsewhere: it
// replaces a link, or is where one leads, or it is a link on the way to there.
func (g *Guard) astray(path string, isDir bool) bool {
	was, noted := g.links[path]
	if !noted || was != (link{}) || !isDir {
		return noted
	}
	for other := range g.links {
		if strings.HasPrefix(other, path+"/") {
			return false // a folder on the way
		}
	}
	return true
}

// elsewhere lists what git obeys as it obeys what is in a git folder at dir, but which is
// elsewhere: the folder of hooks and the configurations that its own names, and what its
// hooks are links to.
func (g *Guard) elsewhere(f *folder, dir string) (list []string) {
	if !f.gitParts() || f.fresh { // a call's own is judged when it ends
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
	return append(list, configured(dir, work)...)
}

// mostIncluded bounds the configurations that are read for one. A call may write one
// that includes itself, over and over.
const mostIncluded = 50

// configured lists what the configuration of a git folder names, with what it includes.
// Hooks count from work, or from the folder that the configuration gives instead.
func configured(dir, work string) (list []string) {
	configs := []string{dir + "/config"}
	for i := 0; i < len(configs); i++ {
		text, err := readText(configs[i])
		if err != nil {
			continue
		}
		hooks, worktree, included := named(text)
		if worktree != "" {
			work = against(dir, worktree)
		}
		if hooks != "" {
			list = append(list, against(work, hooks))
		}
		for _, path := range included {
			if path = against(filepath.Dir(configs[i]), path); len(configs) <= mostIncluded && !slices.Contains(configs, path) {
				configs = append(configs, path)
			}
		}
	}
	return append(list, configs[1:]...)
}

// against is a path that may count from dir.
func against(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return dir + "/" + path
}
