package protect

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

const mostText = 1 << 20

// resumed lists files of an interrupted operation that determine what git runs when it continues.
var resumed = []string{todo, "strategy", "opts"}

// content returns what is wrong with a file, or "". last means that no running call can be writing the file.
func (w *Watcher) content(f *directory, name string, last bool) string {
	dir := f.path()
	path := dir + "/" + name
	mode, ok := modeOf(path)
	if !ok {
		return ""
	}
	if !mode.IsRegular() {
		return "it is no regular file"
	}
	text, err := readText(path)
	switch {
	case err != nil:
		return "it cannot be read"
	case text == "" && !last:
		return "" // it may still be written
	case name == ".git":
		return w.checkGitFile(dir, text)
	case name == "hgrc":
		return checkHgrc(text)
	case f.kind == unfinished:
		return checkResumed(name, text)
	case name != "commondir":
		return checkConfig(text, func(value string) bool { return w.isWorktree(f, value) })
	case f.kind == worktree && strings.TrimRight(text, "\n") == "../..":
		return ""
	}
	return elsewhere
}

func modeOf(path string) (fs.FileMode, bool) {
	fd, err := nofollow.Open(path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	in, err := nofollow.Stat(fd, "")
	return in.Mode, err == nil
}

func readText(path string) (string, error) {
	text, err := nofollow.ReadFile(path, mostText)
	return string(text), err
}

// checkGitFile returns why a .git file is not allowed, or "". It may name the git directory of a worktree or module
// of a watched repository, since that is checked itself.
func (w *Watcher) checkGitFile(dir, text string) string {
	target := leadsTo(dir, text)
	if real, err := filepath.EvalSymlinks(target); target == "" || err != nil || real != target {
		return elsewhere
	}
	for f := range w.tree.holders {
		if (f.kind == modules || f.kind == worktree) && f.path() == target {
			return ""
		}
	}
	return elsewhere
}

// isWorktree reports whether core.worktree in the configuration of a module names the directory with the module's
// .git file.
func (w *Watcher) isWorktree(f *directory, value string) bool {
	if f.kind != modules || value == "" || filepath.IsAbs(value) {
		return false
	}
	module := f.path()
	dir := filepath.Clean(module + "/" + value)
	text, err := readText(dir + "/.git")
	return err == nil && w.inRoot(dir) && leadsTo(dir, text) == module
}

func running(dir string) []string {
	return slices.DeleteFunc(slices.Clone(resumed), func(name string) bool {
		text, err := readText(dir + "/" + name)
		return err != nil || checkResumed(name, text) == ""
	})
}
