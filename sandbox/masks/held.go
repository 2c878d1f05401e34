package masks

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
)

// held is what is known of a file's bytes: whether the repository that it is in has them as
// a blob already. Git would fail on a mask over such a file, which protects nothing.
type held struct {
	yes   bool
	of    state // of the file when that was found
	index state // of the repository's index
}

// state tells whether a file is the same, with the same content, as it was. No program can
// set the time of the latest change (inode(7)).
type state struct {
	file string // which file it is; "" = there is none
	at   string // when it was changed last, and its size
}

func (s state) identity() string { return s.file }

// repository is where git keeps what belongs to a directory.
type repository struct {
	index   string
	objects []string // its own, and those that it borrows from
	wide    bool     // its names are SHA-256
}

// refresh brings up to date what is known of files that calls can read although rules are
// about them. The caller holds mu.
func (t *Tracker) refresh() {
	making := false
	for c := range t.active {
		making = making || c.makes
	}
	indexes := map[string]state{}
	for _, some := range t.names {
		for _, n := range some {
			if n.made != (state{}) && !making && n.made != stateOf(n.path) {
				n.made, t.last = state{}, nil
			}
			asks := n.reads && n.read.Action == policy.Ask || n.writes && n.write.Action == policy.Ask
			if asks && !n.dir {
				t.refreshHeld(n, indexes)
			}
		}
	}
}

// refreshHeld looks at the content of a file again when it, or the index, has changed.
func (t *Tracker) refreshHeld(n *name, indexes map[string]state) {
	repo := t.repository(filepath.Dir(n.target))
	now := held{}
	if repo != nil {
		if _, known := indexes[repo.index]; !known {
			indexes[repo.index] = stateOf(repo.index)
		}
		now.index = indexes[repo.index]
		now.of = stateOf(n.target)
	}
	if now.of == n.held.of && now.index == n.held.index {
		return
	}
	now.yes = repo != nil && repo.holds(n.target, now.of)
	if now.yes != n.held.yes {
		t.last = nil
	}
	n.held = now
}

// HeldByGit reports whether the repository around a file has its bytes as a blob. It is
// false for a file of more than 4 MiB, and for what cannot be read.
func HeldByGit(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if git := gitDirectory(dir); git != "" {
			return openRepository(git).holds(path, stateOf(path))
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// forgetRepositories has every repository looked for again.
func (t *Tracker) forgetRepositories() { clear(t.repos) }

// repository finds the one that a directory is in; nil when it is in none.
func (t *Tracker) repository(dir string) *repository {
	if r, known := t.repos[dir]; known {
		return r
	}
	var r *repository
	if git := gitDirectory(dir); git != "" {
		r = openRepository(git)
	} else if dir != "/" {
		r = t.repository(filepath.Dir(dir))
	}
	t.repos[dir] = r
	return r
}

// gitDirectory is the git directory of a work tree; "" when dir is none.
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
	return against(dir, strings.TrimSpace(to))
}

func openRepository(git string) *repository {
	common := git
	if to := strings.TrimSpace(readShort(filepath.Join(git, "commondir"))); to != "" {
		common = against(git, to)
	}
	r := &repository{index: filepath.Join(git, "index"), objects: []string{filepath.Join(common, "objects")}}
	config := strings.ToLower(readShort(filepath.Join(common, "config")))
	r.wide = strings.Contains(strings.ReplaceAll(config, " ", ""), "objectformat=sha256")
	const mostBorrowed = 16
	for i := 0; i < len(r.objects) && len(r.objects) < mostBorrowed; i++ {
		for line := range strings.Lines(readShort(filepath.Join(r.objects[i], "info", "alternates"))) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				r.objects = append(r.objects, against(r.objects[i], line))
			}
		}
	}
	return r
}

// against is a path that may count from dir.
func against(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// mostHashed bounds the files that are compared with a repository's blobs.
const mostHashed = 4 << 20

// holds reports whether the repository has the bytes of a file in the state in which it was
// seen. What cannot be read, or is changed meanwhile, it does not hold.
func (r *repository) holds(path string, seen state) bool {
	f, err := openQuietly(path)
	if err != nil {
		return false
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, mostHashed+1))
	if err != nil || len(content) > mostHashed || stateOf(path) != seen {
		return false
	}
	name := r.blob(content)
	return slices.ContainsFunc(r.objects, func(dir string) bool { return hasObject(dir, name) })
}

// blob is the name that git gives to content (gitformat-pack(5), git-hash-object(1)).
func (r *repository) blob(content []byte) []byte {
	object := append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...)
	if r.wide {
		sum := sha256.Sum256(object)
		return sum[:]
	}
	sum := sha1.Sum(object)
	return sum[:]
}

// hasObject reports whether a directory of objects has one of this name, loose or packed.
func hasObject(dir string, name []byte) bool {
	text := hex.EncodeToString(name)
	if info, err := os.Lstat(filepath.Join(dir, text[:2], text[2:])); err == nil && info.Mode().IsRegular() {
		return true
	}
	indexes, _ := filepath.Glob(filepath.Join(escaped(dir), "pack", "*.idx"))
	return slices.ContainsFunc(indexes, func(path string) bool { return isPacked(path, name) })
}

// escaped is a path as a pattern of filepath.Glob.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// isPacked looks for a name in the index of a pack, of version 2 (gitformat-pack(5)).
func isPacked(path string, name []byte) bool {
	const header, fanout = 8, 256 * 4
	f, err := openQuietly(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, header+fanout)
	if _, err := f.ReadAt(head, 0); err != nil || !bytes.HasPrefix(head, []byte("\xfftOc\x00\x00\x00\x02")) {
		return false
	}
	count := func(first int) int64 {
		if first < 0 {
			return 0
		}
		return int64(binary.BigEndian.Uint32(head[header+4*first:]))
	}
	low, high := count(int(name[0])-1), count(int(name[0]))
	at := make([]byte, len(name))
	for low < high {
		middle := (low + high) / 2
		if _, err := f.ReadAt(at, header+fanout+middle*int64(len(name))); err != nil {
			return false
		}
		switch bytes.Compare(name, at) {
		case 0:
			return true
		case -1:
			high = middle
		default:
			low = middle + 1
		}
	}
	return false
}

// readShort reads a short file of git's; "" when it cannot.
func readShort(path string) string {
	f, err := openQuietly(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return ""
	}
	return string(text)
}
