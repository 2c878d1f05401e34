package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unswept are calls that have ended while not every folder could be looked through.
// What they may have left is found later, by this Guard or by the next one. The zero
// value, and nil, blame nobody.
type unswept struct {
	until time.Time // when the last of them ended: what came later is not theirs
	reach           // since the first of them began
}

// blames reports whether they may have put there without leave what is at a path.
func (u *unswept) blames(path string) bool {
	if u == nil || u.may(path) || !u.could(path) {
		return false
	}
	changed, _, ok := timesOf(path)
	return ok && !changed.After(u.until)
}

// made reports whether they may have made the folder or file at a path.
func (u *unswept) made(path string) bool {
	if u == nil {
		return false
	}
	_, born, ok := timesOf(path)
	return ok && !born.Before(u.Since) && !born.After(u.until)
}

// timesOf tells when what is at a path was changed last in any way, which no program
// can set, and when it was made: the latest there is where the file system keeps no
// such time.
func timesOf(path string) (changed, born time.Time, ok bool) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_CTIME|unix.STATX_BTIME, &st); err != nil {
		return changed, born, false
	}
	changed = time.Unix(st.Ctime.Sec, int64(st.Ctime.Nsec))
	born = changed
	if st.Mask&unix.STATX_BTIME != 0 {
		born = time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
	}
	return changed, born, true
}

// stamp is the time that a file gets which is changed now, or an earlier one: files
// are stamped by a clock that goes by ticks, and is behind time.Now
// (CLOCK_REALTIME_COARSE, clock_gettime(2)). The zero time when it cannot be read.
func stamp() time.Time {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return time.Time{}
	}
	return time.Unix(now.Unix())
}

// leave notes that a call has ended with folders unseen, so that they are looked
// through now that there is time.
func (g *Guard) leave(c *Call) {
	u := &unswept{time.Now(), c.reach}
	if old := g.late; old != nil {
		u.reach = old.join(c.reach)
	}
	g.late = u
	g.options.remember(u)
	if !g.sweeping && !g.closed {
		g.sweeping = true
		// Ends when nothing is left to be looked at, or with Close.
		g.work.Go(g.sweep)
	}
}

// piece is how many folders are looked through before others may go on.
const piece = 2000

// sweep looks through what calls have left unseen.
func (g *Guard) sweep() {
	for done := false; !done; {
		g.mu.Lock()
		if done = g.closed || len(g.tree.unseen) == 0; !done {
			g.pump()
			g.lookAgain(piece)
			if done = len(g.tree.unseen) == 0; done {
				g.swept()
			}
		}
		g.sweeping = !done
		g.mu.Unlock()
	}
	g.tell()
}

// swept notes that all folders have been looked through.
func (g *Guard) swept() {
	alone := len(g.active) == 0
	if g.late != nil {
		g.judgeUnproven(alone)
		g.late = nil
		g.options.forget()
	}
	if alone {
		g.settle()
	}
}

// note is unswept as it is written down.
type note struct {
	Until time.Time
	Reach reach
}

// note is the file in which a Guard tells the next one of these roots what it could
// not look through.
func (o Options) note() string {
	sum := sha256.Sum256([]byte(strings.Join(o.Roots, "\x00")))
	return filepath.Join(o.Quarantine, "unseen-"+hex.EncodeToString(sum[:6]))
}

// remember writes the note. Without it only the next start knows less.
func (o Options) remember(u *unswept) {
	text, err := json.Marshal(note{u.until, u.reach})
	if err == nil && os.MkdirAll(o.Quarantine, 0o700) == nil {
		fresh := o.note() + ".new"
		if os.WriteFile(fresh, text, 0o600) == nil {
			_ = os.Rename(fresh, o.note())
		}
	}
}

// remembered reads the note; nil when there is none.
func (o Options) remembered() *unswept {
	var n note
	text, err := os.ReadFile(o.note())
	if err != nil || json.Unmarshal(text, &n) != nil {
		return nil
	}
	return &unswept{n.Until, n.Reach}
}

func (o Options) forget() {
	if err := os.Remove(o.note()); err != nil && !errors.Is(err, os.ErrNotExist) {
		_ = os.Truncate(o.note(), 0) // an empty note is none
	}
}
