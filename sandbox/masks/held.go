package masks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// held records whether a person added a file's bytes to git under this path. A mask on such a file would make git
// fail, and protect nothing.
type held struct {
	yes bool
	of  state // state of the file when that was checked
	by  int   // index.version when that was checked
}

// state identifies a file and its content; zero = missing.
type state struct {
	file    string // identity of the file
	born    int64  // birth time in nanoseconds
	changed int64  // ctime in nanoseconds
	size    int64
	links   uint32
	special bool // neither a regular file nor a directory
}

// stateOf returns the state of a path, following no link at its end.
func stateOf(path string) state {
	in, err := nofollow.Lstat(path)
	if err != nil {
		return state{}
	}
	born := in.Born
	if born.IsZero() && !in.Mode.IsDir() { // not recorded; the ctime of a directory changes with its entries
		born = in.Changed
	}
	return state{
		file: fmt.Sprintf("%x:%x:%d", in.Device, in.Inode, in.Born.UnixNano()),
		born: born.UnixNano(), changed: in.Changed.UnixNano(), size: in.Size,
		links: in.Links, special: !in.Mode.IsRegular() && !in.Mode.IsDir(),
	}
}

type repository struct {
	top     string
	index   string
	objects []string // including alternates
	wide    bool     // object names are SHA-256
}

// refresh updates the state of readable files with rules. The caller holds mu.
func (t *Tracker) refresh() {
	making := t.making()
	for _, root := range t.roots { // before a call can have written there
		t.index(t.repository(root))
	}
	t.readIndexes(true)
	t.relink()
	linked := map[string]uint32{}
	for n := range t.names.all() {
		if n.made != (state{}) && !making && n.made != stateOf(n.path) {
			n.made, t.last = state{}, nil
		}
		if !n.reads || n.dir || n.made != (state{}) {
			continue
		}
		if n.read.Action == policy.Ask {
			t.refreshHeld(n)
		}
		if n.is == "" {
			continue
		}
		if now := stateOf(n.target); now.links > 1 {
			linked[now.file] = now.links
		}
	}
	for _, n := range t.ghosts {
		t.refreshHeld(n)
	}
	t.findLinked(linked)
}

func (t *Tracker) making() bool {
	for c := range t.active {
		if c.makes {
			return true
		}
	}
	return false
}

// refreshHeld compares a file again if it or the index has changed. It computes the hash in memory, since calls can
// observe which files the daemon reads.
func (t *Tracker) refreshHeld(n *name) {
	repo := t.repository(filepath.Dir(n.target))
	index, now := t.index(repo), held{}
	if index != nil {
		now.of, now.by = stateOf(n.target), index.version
	}
	if now.of == n.held.of && now.by == n.held.by {
		return
	}
	if index != nil {
		now.yes = index.vouches(repo, n.target, now.of)
	}
	if now.yes != n.held.yes {
		t.last = nil
	}
	n.held = now
}

// repository returns the repository that contains a directory, or nil. The caller holds mu.
func (t *Tracker) repository(dir string) *repository {
	if r, known := t.repos[dir]; known {
		return r
	}
	var r *repository
	if git := gitDirectory(dir); git != "" {
		r = openRepository(dir, git)
	} else if dir != "/" {
		r = t.repository(filepath.Dir(dir))
	}
	t.repos[dir] = r
	return r
}

func gitDirectory(dir string) string {
	path := filepath.Join(dir, ".git")
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return path
	}
	to, ok := strings.CutPrefix(readShort(path), "gitdir: ")
	if !ok {
		return ""
	}
	return nofollow.Against(dir, strings.TrimSpace(to))
}

func openRepository(top, git string) *repository {
	common := git
	if to := strings.TrimSpace(readShort(filepath.Join(git, "commondir"))); to != "" {
		common = nofollow.Against(git, to)
	}
	r := &repository{top: top, index: filepath.Join(git, "index"), objects: []string{filepath.Join(common, "objects")}}
	config := strings.ToLower(readShort(filepath.Join(common, "config")))
	r.wide = strings.Contains(strings.ReplaceAll(config, " ", ""), "objectformat=sha256")
	const mostBorrowed = 16
	for i := 0; i < len(r.objects) && len(r.objects) < mostBorrowed; i++ {
		for line := range strings.Lines(readShort(filepath.Join(r.objects[i], "info", "alternates"))) {
			line = strings.TrimSpace(line)
			isPath := line != "" && !strings.HasPrefix(line, "#")
			if isPath && len(r.objects) < mostBorrowed {
				r.objects = append(r.objects, nofollow.Against(r.objects[i], line))
			}
		}
	}
	return r
}

func readShort(path string) string {
	text, err := nofollow.ReadFile(path, 1<<20)
	if err != nil {
		return ""
	}
	return string(text)
}
