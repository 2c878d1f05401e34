package protect

import "fmt"

// Each protected path needs about three mounts in every later call, and the kernel allows 100 000 (fs.mount-max).
// Beyond that, no command would start.
const (
	mostLeft = 1024    // protected paths that a call may leave in directories that it created
	mostKept = 1 << 14 // protected paths in total, beyond which a call may add none
	gitPaths = 3       // protected paths in a git directory
	slack    = 64      // new paths after which those of a call are counted again
)

const tooMany = "there are too many such files: each is kept from every later call by mounts, of which the kernel allows a number"

// instead returns advice for a finding; "" = the advice for any protected name.
func instead(why string) string {
	switch why {
	case deeper:
		return "Let the command make fewer directories below each other"
	case tooMany:
		return fmt.Sprintf("A call may leave %d files that other programs run or obey in directories that it makes, while the workspace has fewer than %d: let it make fewer, or ask the user to remove some", mostLeft, mostKept)
	}
	return ""
}

// exceeds counts n new protected paths. It reports whether a call that may have created their directory has created
// too many. Such a call is ended.
func (w *Watcher) exceeds(f *directory, n int) (yes bool) {
	base := f.base(w.names)
	if base.born.IsZero() { // it may be older than the call
		return false
	}
	yes = w.late != nil && w.late.Exceeded && w.late.made(base.path())
	for c := range w.active {
		if c.trusted || !c.made(base) {
			continue
		}
		if c.fresh += n; c.fresh > c.room && !c.exceeded {
			left := w.left(c)
			c.fresh, c.exceeded = min(left, c.room-slack), left > c.room
		}
		if yes = yes || c.exceeded; c.exceeded {
			w.end(map[*Call]bool{c: true})
		}
	}
	return yes
}

// left returns the number of protected paths in directories that a call has created.
func (w *Watcher) left(c *Call) (n int) {
	for f := range w.tree.holders {
		if base := f.base(w.names); base.born.IsZero() || !c.made(base) {
			continue
		}
		if n += len(f.held); f.isGit() {
			n += gitPaths
		}
	}
	return n
}
