package snapshot

import (
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Cached is a Host for frequent comparisons. It does not look up missing paths again while the directories where they
// would appear have not changed. It is safe for concurrent use.
type Cached struct {
	*Host
	unchanged atomic.Pointer[unchangedSince] // nil = compare everything
	others    atomic.Int32                   // callers of Shared.Take that have not called Close, except one
}

// unchangedSince says what a comparison can skip.
type unchangedSince struct {
	above []entries // directories in which missing paths would appear
	there []int     // indexes of paths that exist
}

// entries detects changes to a directory by its ctime, which no program can set (inode(7)).
type entries struct {
	path         string
	major, minor uint32
	inode        uint64
	changed      unix.StatxTimestamp
}

// settled is how long a directory must be unchanged before its ctime is trusted: file systems round it, to two
// seconds at worst (FAT). Some do not record it; then it is 0.
const settled = 5 * time.Second

// TakeCached is like Take, and returns a Cached.
func TakeCached(dirs, files []string) *Cached { return &Cached{Host: Take(dirs, files)} }

// Shared gives all who depend on the same paths one Cached while the host is unchanged, so that it is compared as a
// whole only once. The zero value is ready for use, also concurrently.
type Shared struct {
	mu     sync.Mutex
	latest *Cached // nil = none
}

// Take returns a Cached whose state is that of now. The caller must close it.
func (s *Shared) Take(dirs, files []string) *Cached {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.latest; l == nil || !l.isOf(dirs, files) || !l.Same() {
		s.close()
		s.latest = TakeCached(dirs, files)
	}
	s.latest.others.Add(1)
	return s.latest
}

// Close ends the use by Shared itself.
func (s *Shared) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

func (s *Shared) close() {
	if s.latest != nil {
		s.latest.Close()
		s.latest = nil
	}
}

func (h *Host) isOf(dirs, files []string) bool {
	return slices.Equal(h.dirs, dirs) && slices.Equal(h.files, files)
}

// Close closes the Host when all have closed it.
func (s *Cached) Close() {
	if s != nil && s.others.Add(-1) < 0 {
		s.Host.Close()
	}
}

// Same reports whether the host is unchanged.
func (s *Cached) Same() bool {
	if c := s.unchanged.Load(); c != nil && c.still() {
		return s.mountsSame() && s.sameAt(c.there)
	}
	next := s.unchangedAt(time.Now()) // before the comparison, so that no change is missed between both
	if !s.Host.Same() {
		return false
	}
	s.unchanged.Store(next)
	return true
}

func (h *Host) sameAt(indexes []int) bool {
	return !slices.ContainsFunc(indexes, func(i int) bool { return h.then[i] != h.at(i) })
}

// still reports whether no directory has changed.
func (c *unchangedSince) still() bool {
	return !slices.ContainsFunc(c.above, func(was entries) bool {
		now, err := entriesOf(was.path)
		return err != nil || now != was
	})
}

// unchangedAt returns what can be skipped from now on, or nil while a directory changes.
func (s *Cached) unchangedAt(now time.Time) *unchangedSince {
	var c unchangedSince
	known := map[string]bool{}
	for i, then := range s.then {
		dir, missing := "", false
		if i >= len(s.dirs) && then.errno == unix.ENOENT {
			dir, missing = above(s.files[i-len(s.dirs)])
		}
		if !missing {
			c.there = append(c.there, i)
			continue
		}
		if known[dir] {
			continue
		}
		known[dir] = true
		e, err := entriesOf(dir)
		if err != nil || e.changed.Sec <= 0 || now.Sub(time.Unix(e.changed.Sec, 0)) < settled {
			return nil
		}
		c.above = append(c.above, e)
	}
	return &c
}

// above returns the directory where the first missing component of path would appear. missing is false if the path
// ends otherwise, for example in a dangling link.
func above(path string) (dir string, missing bool) {
	var st unix.Stat_t
	for unix.Lstat(path, &st) == unix.ENOENT {
		path = filepath.Dir(path)
		if err := unix.Stat(path, &st); err == nil {
			return path, st.Mode&unix.S_IFMT == unix.S_IFDIR
		}
	}
	return "", false
}

func entriesOf(path string) (entries, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_CTIME, &st)
	return entries{path, st.Dev_major, st.Dev_minor, st.Ino, st.Ctime}, err
}
