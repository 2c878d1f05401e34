package guard

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	obey      = "other programs run or obey what stands in it"
	elsewhere = "git would take its configuration and hooks from another place"
)

// judge looks at what is in a folder under a name, as far as the name tells what
// to think of it. What depends on content is judged when calls end: now it may be
// half written.
func (g *Guard) judge(f *folder, name string, mode fs.FileMode) {
	link := mode&fs.ModeSymlink != 0
	switch {
	case len(g.links) > 0 && g.astray(f.path()+"/"+name, mode.IsDir()):
		g.suspect(f, name, obey)
	case f.kind == plain && name == ".git":
		g.judgeRepository(f, mode)
	case f.obeyed && slices.Contains(g.names.plain, name):
		g.suspect(f, name, obey)
	case f.kind == hooks && !strings.HasSuffix(name, ".sample"):
		g.suspect(f, name, "git runs it")
	case f.kind == gitInfo && name == "attributes" && !f.parent.fresh && slices.Contains(g.names.git, "info/attributes"):
		g.suspect(f, name, "git runs filters that it names")
	case f.gitParts() && link && linkable(name):
		g.suspect(f, name, "git would follow it to another place")
	case f.gitParts() && name == "commondir" && f.kind != worktree:
		g.suspect(f, name, elsewhere)
	case f.gitParts() && (name == "config" || name == "config.worktree" || name == "commondir"):
		g.prove(f, name)
	}
}

// prove has a file judged by its content once a call ends.
func (g *Guard) prove(f *folder, name string) {
	g.existing = nil
	if path := f.path() + "/" + name; g.blames(path) {
		g.unproven[path] = f
	}
}

// gitParts reports whether git reads the folder as its own.
func (f *folder) gitParts() bool { return f.kind.isGit() || f.bare }

// linkable are the parts of a git folder that decide what runs.
func linkable(name string) bool {
	switch name {
	case "hooks", "info", "modules", "worktrees", "config", "config.worktree", "commondir":
		return true
	}
	return false
}

// judgeRepository looks at a .git that is no folder.
func (g *Guard) judgeRepository(f *folder, mode fs.FileMode) {
	switch {
	case mode.IsDir():
	case mode&fs.ModeSymlink != 0:
		g.suspect(f, ".git", "git would follow it to another place")
	case mode.IsRegular():
		f.gitFile = true
		g.repository(f, len(g.active) > 0 || g.late.made(f.path()+"/.git"))
		g.prove(f, ".git")
	}
}

// suspect takes away what a call may have put under a name.
func (g *Guard) suspect(f *folder, name, why string) {
	g.existing = nil
	if path := f.path() + "/" + name; g.blames(path) {
		g.accuse(path, why)
	}
}

// isBare tells whether git would take a folder with such things in it for a git
// folder (setup.c, is_git_directory).
func isBare(has func(name string) bool) bool {
	return has("HEAD") && (has("commondir") || has("refs") && has("objects"))
}

// becomeBare takes a folder of the project for a git folder from now on. What is
// known of the folders in it is forgotten, so that they are looked at anew.
func (g *Guard) becomeBare(f *folder) {
	f.bare = true
	g.hold(f)
	for name, sub := range f.children {
		if f.kindBelow(name) != plain {
			g.forget(sub)
		}
	}
}

// judgeUnproven judges by content what has come since calls run. last tells that
// no other call runs, so that nothing is half written.
func (g *Guard) judgeUnproven(last bool) {
	for path, f := range g.unproven {
		if why := g.content(path, f, last); why != "" {
			delete(g.unproven, path)
			g.accuse(path, why)
		}
	}
}

// mostText is how long a file may be that is judged by its content.
const mostText = 1 << 20

// content says what is wrong with a file.
func (g *Guard) content(path string, f *folder, last bool) string {
	mode, ok := modeOf(path)
	if !ok {
		return ""
	}
	if !mode.IsRegular() {
		return "it is no regular file"
	}
	text, err := readText(path)
	switch name := filepath.Base(path); {
	case err != nil:
		return "it cannot be read"
	case text == "" && !last:
		return "" // it may be about to be written
	case name == ".git":
		return g.suspectGitFile(filepath.Dir(path), text)
	case name != "commondir":
		return suspectConfig(text)
	case f.kind == worktree && strings.TrimRight(text, "\n") == "../..":
		return ""
	}
	return elsewhere
}

// readText reads a file without following a link, waiting for nothing.
func readText(path string) (string, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostText+1))
	if err == nil && len(b) > mostText {
		err = fs.ErrInvalid
	}
	return string(b), err
}

// suspectGitFile says why a .git file in dir leads astray: it may lead to a
// worktree's or module's folder of a repository that is watched, and so judged.
func (g *Guard) suspectGitFile(dir, text string) string {
	target := leadsTo(dir, text)
	if real, err := filepath.EvalSymlinks(target); target == "" || err != nil || real != target {
		return elsewhere
	}
	for f := range g.tree.holders {
		if (f.kind == modules || f.kind == worktree) && f.path() == target {
			return ""
		}
	}
	return elsewhere
}
