package dispatch

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// aspect is what counts of a file while a person decides, besides where its path leads.
type aspect int

const (
	identity aspect = 1 << iota
	content
)

// sight is how a file looks.
type sight struct {
	canonical string
	info      os.FileInfo // nil: it does not exist, or its identity does not count
	sum       string
}

func (s sight) equals(o sight) bool {
	if s.canonical != o.canonical || s.sum != o.sum {
		return false
	}
	if s.info == nil || o.info == nil {
		return s.info == o.info
	}
	return os.SameFile(s.info, o.info) && s.info.Mode().Type() == o.info.Mode().Type()
}

// text returns the same text for equal sights.
func (s sight) text() string {
	file := ""
	if s.info != nil {
		file = s.info.Mode().Type().String()
		if stat, ok := s.info.Sys().(*syscall.Stat_t); ok {
			file += fmt.Sprint(stat.Dev, stat.Ino)
		}
	}
	return fmt.Sprintf("%q %q %s", s.canonical, s.sum, file)
}

// maxSummed limits the bytes that are read of all files of a call, small ones first. Of further files size and time
// count.
const maxSummed = 64 << 20

// watch looks at the files on which a call works. before are those of the asked parts. firstChanged returns one that
// looks different when it is called, or "". If the answer widens the sandbox, the files of all parts of the call count.
// Nothing keeps others from changing files while the call runs.
func (q question) watch() (before map[string]sight, firstChanged func(approval.Verdict) string) {
	if _, ok := q.inv.(tools.Previewed); ok {
		return nil, func(approval.Verdict) string { return "" } // Execute compares
	}
	files := q.files(false)
	before, all := sights(files), map[string]aspect{}
	if escalationLimits(q).Offer(q.call.base()) != nil {
		all = q.files(true)
	}
	beforeAll := sights(all)
	return before, func(v approval.Verdict) string {
		files, before := files, before
		if v.Escalation != (approval.Escalation{}) {
			files, before = all, beforeAll
		}
		now := sights(files)
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if !now[path].equals(before[path]) {
				return path
			}
		}
		return ""
	}
}

// files returns the files that redirections and the parts of a call name for which the policy asks. What is written has
// to be the same file. The content counts of programs, scripts and other input in the workspace, where calls may change
// it. With all, every part of the call counts.
func (q question) files(all bool) map[string]aspect {
	isAsked := func(e policy.Effect) bool {
		return q.rules.policy.Decide([]policy.Effect{e}).Action != policy.Allow
	}
	sources := map[string]bool{}
	for _, e := range q.effects {
		redirects := strings.IndexAny(strings.TrimLeft(e.Source, "0123456789&"), "<>") == 0
		if all || redirects || isAsked(e) {
			sources[e.Source] = true
		}
	}
	files := map[string]aspect{}
	for _, e := range q.effects {
		if !sources[e.Source] {
			continue
		}
		for _, path := range pathsOf(e) {
			isInput := e.Kind == policy.Exec || !e.Tree && !isAsked(e)
			switch {
			case e.Kind == policy.Write:
				files[path] |= identity
			case isInput && paths.Within(path, q.call.workspace.opt.Root):
				files[path] |= content
			default:
				files[path] |= 0
			}
		}
	}
	return files
}

// pathsOf returns the path of an effect, or those that may have its program. A path with ".." may lead elsewhere when a
// link before that is replaced, so it is as the command names it.
func pathsOf(e policy.Effect) (all []string) {
	if e.Kind == policy.Read || e.Kind == policy.Write {
		if e.Unknown {
			return nil
		}
		if real, err := paths.Resolve(e.Path); err == nil && e.Canonical != "" && e.Canonical != real {
			all = append(all, e.Canonical)
		}
		return append(all, e.Path)
	}
	for i, w := range e.Argv {
		isProgram := i == 0 && strings.Contains(w.Text, "/")
		switch named := isProgram || strings.Contains(w.Text, ".."); {
		case w.Dynamic || !named:
		case filepath.IsAbs(w.Text):
			all = append(all, w.Text)
		default:
			for _, dir := range e.Dirs {
				all = append(all, strings.TrimSuffix(dir, "/")+"/"+strings.TrimPrefix(w.Text, "./"))
			}
		}
	}
	return all
}

func sights(files map[string]aspect) map[string]sight {
	all, left := map[string]sight{}, int64(maxSummed)
	sizes := map[string]int64{}
	for path := range files {
		if info, err := os.Stat(path); err == nil {
			sizes[path] = info.Size()
		}
	}
	bySize := func(a, b string) int { return cmp.Compare(sizes[a], sizes[b]) }
	for _, path := range slices.SortedFunc(maps.Keys(files), bySize) {
		var s sight
		s.canonical, _ = paths.Resolve(path) // "" after an error
		if files[path]&identity != 0 {
			s.info, _ = os.Lstat(path) // nil after an error
		}
		if files[path]&content != 0 {
			s.sum = sum(path, &left)
		}
		all[path] = s
	}
	return all
}

// sum returns the sum of a regular file. It returns its size and time if that would read more than left.
func sum(path string, left *int64) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if *left -= info.Size(); *left < 0 {
		return fmt.Sprint(info.Size(), info.ModTime())
	}
	h := sha256.New()
	_, err = io.Copy(h, io.LimitReader(f, info.Size()+1))
	return fmt.Sprintf("%x %v", h.Sum(nil), err)
}
