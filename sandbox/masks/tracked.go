package masks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// tracked records whether a person added a file's bytes to git under this path. A mask on such a file would make git
// fail, and protect nothing.
type tracked struct {
	yes     bool
	file    state // when that was checked
	version int   // index.version when that was checked
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
	sha256  bool     // object names are SHA-256
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
			t.refreshTracked(n)
		}
		if n.is == "" {
			continue
		}
		if now := stateOf(n.target); now.links > 1 {
			linked[now.file] = now.links
		}
	}
	for _, n := range t.ghosts {
		t.refreshTracked(n)
	}
	t.findLinked(linked)
}

// making reports whether new names count as created by an active call.
func (t *Tracker) making() bool {
	for c := range t.active {
		if c.makes {
			return true
		}
	}
	return false
}

// refreshTracked compares a file with the index again if either has changed. It computes the hash in memory, since calls can
// observe which files the daemon reads.
func (t *Tracker) refreshTracked(n *name) {
	repo := t.repository(filepath.Dir(n.target))
	index, now := t.index(repo), tracked{}
	if index != nil {
		now.file, now.version = stateOf(n.target), index.version
	}
	if now.file == n.tracked.file && now.version == n.tracked.version {
		return
	}
	if index != nil {
		now.yes = index.vouches(repo, n.target, now.file)
	}
	if now.yes != n.tracked.yes {
		t.last = nil
	}
	n.tracked = now
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
	r.sha256 = strings.Contains(strings.ReplaceAll(config, " ", ""), "objectformat=sha256")
	const maxBorrowed = 16
	for i := 0; i < len(r.objects) && len(r.objects) < maxBorrowed; i++ {
		for line := range strings.Lines(readShort(filepath.Join(r.objects[i], "info", "alternates"))) {
			line = strings.TrimSpace(line)
			isPath := line != "" && !strings.HasPrefix(line, "#")
			if isPath && len(r.objects) < maxBorrowed {
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
