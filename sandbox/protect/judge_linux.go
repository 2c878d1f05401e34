package protect

import (
	"io/fs"
	"slices"
	"strings"
)

const (
	obeyed    = "other programs run or obey it"
	elsewhere = "git would take its configuration and hooks from another directory"
)

// judge checks an entry of a directory by name and type. Content is checked when calls end, since it may be half
// written now.
func (w *Watcher) judge(f *directory, name string, mode fs.FileMode) {
	switch {
	case len(w.options.Names) == 0: // only the Observer receives entries
	case len(w.links) > 0 && w.astray(f, name, mode):
		w.accuse(f, name, obeyed, true)
	case f.kind == plain && w.judgeProject(f, name, mode):
	default:
		w.judgeGit(f, name, mode)
	}
}

// judgeProject checks an entry of a directory outside of git directories. It reports whether the entry may matter.
func (w *Watcher) judgeProject(f *directory, name string, mode fs.FileMode) bool {
	link := mode&fs.ModeSymlink != 0
	switch {
	case name == ".git":
		w.judgeRepository(f, mode)
	case w.counts(f, name):
		w.judgeName(f, name)
	case link && w.names.nested[name] != nil && !f.library:
		w.accuse(f, name, "other programs would follow it to files that they run or obey", false)
	default:
		return false
	}
	return true
}

// judgeGit checks an entry of a git directory, or of one that may be a bare repository.
func (w *Watcher) judgeGit(f *directory, name string, mode fs.FileMode) {
	link := mode&fs.ModeSymlink != 0
	isFile := mode.IsRegular() || mode.IsDir() || link
	switch {
	case f.kind == hooks && w.judgeHook(f, name):
	case f.kind == gitInfo && name == "attributes" && w.filtersAlien(f):
		w.accuse(f, name, "git runs filters that it names", true)
	case f.isGit() && w.judgeSetup(f, name, link):
	case f.kind != plain && link:
		w.accuse(f, name, "git would follow it to another file", true)
	case (f.kind != plain || f.bare) && !isFile:
		w.accuse(f, name, "git would wait for it, or be fed by whoever holds its other end: it is a FIFO, socket or device", true)
	}
}

// judgeHook checks an entry of hooks, remotes or branches. It reports whether git obeys it.
func (w *Watcher) judgeHook(f *directory, name string) bool {
	switch {
	case slices.Contains(oldRemotes, f.name):
		w.accuse(f, name, "git would fetch from and push to what it names", true)
	case strings.HasSuffix(name, ".sample"):
		return false
	default:
		w.accuse(f, name, "git runs it", true)
	}
	return true
}

// judgeSetup checks an entry of a git directory that locates its parts or configures it. It reports whether the entry
// is one of these.
func (w *Watcher) judgeSetup(f *directory, name string, link bool) bool {
	switch {
	case link && slices.Contains(linkable, name):
		w.accuse(f, name, "git would follow it to another directory", true)
	case name == "commondir" && f.kind != worktree:
		w.accuse(f, name, elsewhere, true)
	case name == "config" || name == "config.worktree" || name == "commondir":
		w.prove(f, name)
	default:
		return false
	}
	return true
}

// filtersAlien reports whether info/attributes is protected and no running call has created the directory.
func (w *Watcher) filtersAlien(f *directory) bool {
	return slices.Contains(w.names.git, "info/attributes") && !w.ownToSome(f)
}

func (w *Watcher) counts(f *directory, name string) bool {
	return !f.library && w.names.has(f.name, name)
}

// judgeName checks a protected name. A project that the call created may contain such files, since no other program
// has opened it yet. The content of hgrc is checked nevertheless, since every Mercurial command reads it.
func (w *Watcher) judgeName(f *directory, name string) {
	fresh := !f.held[name]
	if fresh {
		if f.held == nil {
			f.held = map[string]bool{}
		}
		f.held[name] = true
		w.hold(f)
	}
	switch {
	case fresh && w.exceeds(f, 1):
		w.accuse(f, name, tooMany, true)
	case f.name == ".hg" && name == "hgrc":
		w.prove(f, name)
	default:
		w.accuse(f, name, obeyed, false)
	}
}

// prove schedules a check of a file's content for the end of a call. If no call created the directory, it checks at
// once.
func (w *Watcher) prove(f *directory, name string) {
	w.existing = nil
	path := f.path() + "/" + name
	by, own, _ := w.suspects(f, path)
	if by == nil {
		return
	}
	w.unproven[entry{f, name}] = struct{}{}
	if !own && name != ".git" && name != "commondir" {
		if why := w.content(f, name, false); why != "" {
			w.accuse(f, name, why, true)
		}
	}
}

// linkable lists names in a git directory for which git follows links.
var linkable = []string{"hooks", "info", "modules", "worktrees", "config", "config.worktree", "commondir", "rebase-merge", "rebase-apply", "sequencer"}

func (w *Watcher) judgeRepository(f *directory, mode fs.FileMode) {
	switch {
	case mode.IsDir():
	case mode.IsRegular():
		f.gitFile = true
		w.hold(f)
		w.prove(f, ".git")
	case mode&fs.ModeSymlink != 0:
		w.accuse(f, ".git", "git would follow it to another directory", true)
	default:
		w.accuse(f, ".git", "it is a FIFO, socket or device", true)
	}
}

// isBare reports whether git treats a directory with these names as a git directory
// (is_git_directory).
func isBare(has func(name string) bool) bool {
	if !has("HEAD") {
		return false
	}
	return has("commondir") || has("refs") && has("objects")
}

func bareName(name string) bool {
	switch name {
	case "HEAD", "commondir", "refs", "objects":
		return true
	}
	return false
}

func (w *Watcher) countGit(f *directory) {
	if f.isGit() && f.parent != nil && w.exceeds(f, gitPaths) {
		w.accuse(f.parent, f.name, tooMany, true)
	}
}

// becomeBare marks a project directory as a git directory, and forgets its subdirectories so that they are read
// again.
func (w *Watcher) becomeBare(f *directory) {
	f.bare = true
	w.hold(f)
	w.countGit(f)
	w.watchMore(f)
	for name, sub := range f.children {
		if f.kindBelow(name) != plain {
			w.drop(sub)
		}
	}
}
