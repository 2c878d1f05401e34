package sandbox

import (
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// steady is a world that is compared often. What does not exist is not looked for as long as the
// directories in which it is missing get no entry. It is for concurrent use.
type steady struct {
	*world
	calm atomic.Pointer[calm] // nil: everything is to be looked at
}

// calm is what need not be looked at.
type calm struct {
	above []entries // where what is missing would appear
	there []int     // of world.then: what is not missing
}

// entries tells whether a directory has changed: no program can set ctime (inode(7)).
type entries struct {
	path         string
	major, minor uint32
	inode        uint64
	changed      unix.StatxTimestamp
}

// settled is how long a folder must not have changed to be believed: file systems
// stamp a change by the tick, of two seconds at worst (FAT). Some stamp none: 0.
const settled = 5 * time.Second

func (s *steady) same() bool {
	if c := s.calm.Load(); c != nil && c.still() {
		return s.mountsSame() && s.sameAt(c.there)
	}
	next := s.calmAt(time.Now()) // before everything is compared, so that no change falls in between
	if !s.world.same() {
		return false
	}
	s.calm.Store(next)
	return true
}

// sameAt compares some places.
func (w *world) sameAt(places []int) bool {
	for _, i := range places {
		if w.then[i] != w.at(i) {
			return false
		}
	}
	return true
}

// still tells whether no folder has got an entry.
func (c *calm) still() bool {
	for _, was := range c.above {
		if now, err := entriesOf(was.path); err != nil || now != was {
			return false
		}
	}
	return true
}

// calmAt finds what need not be looked at from now on; nil while a folder changes.
func (s *steady) calmAt(now time.Time) *calm {
	var c calm
	known := map[string]bool{}
	for i, then := range s.then {
		dir, missing := "", false
		if i >= len(s.folders) && then.errno == unix.ENOENT {
			dir, missing = above(s.files[i-len(s.folders)])
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

// above is the folder whose entry is the first that is missing on the way to path.
// There is none where the way ends otherwise, in a link that leads nowhere for one.
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
