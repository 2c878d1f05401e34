package sandbox

import (
	"os"
	"os/exec"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/cgroup"
	"github.com/toold/toold/sandbox/internal/helper"
)

const (
	// mostIdleSlots is how many helpers wait for a call.
	mostIdleSlots = 64
	// restFor is how long no call may have ended before those that wait are ended.
	restFor = time.Second
)

// Slots keeps helpers whose call has ended and holds the next ones in them: see Command.Slots. The
// zero value is ready, nil keeps none. The methods may be called from several goroutines.
type Slots struct {
	work sync.WaitGroup // helpers on their way out

	mu     sync.Mutex
	idle   []*slot     // the one used last is the last
	rest   *time.Timer // ends all that are idle; nil before the first
	closed bool
}

// slot is a helper with what belongs to it: its namespaces and its control group.
type slot struct {
	cmd      *exec.Cmd
	control  *os.File
	group    *cgroup.Group
	identity string
	kind     slotKind
	mounts   *world // what the mounts of its base were copied from
	made     *view  // the view that it has made last
}

// view is what a helper has made a view from.
type view struct {
	helper.View
	caches *cacheSet
	was    *steady
}

// viewOf remembers it. It is called before the view is made.
func viewOf(c Command, v helper.View) *view {
	world := lookAround(c)
	world.folders = append(world.folders, helper.WaysTo(v)...) // which it has fastened
	world.then = world.now()
	return &view{v, c.Profile.Caches.set(), &steady{world: world}}
}

// fits reports whether the view that a command needs would be made from the same.
func (v *view) fits(c Command, needs helper.View) bool {
	return v.caches == c.Profile.Caches.set() && reflect.DeepEqual(v.View, needs) && v.was.same()
}

func (v *view) close() {
	if v != nil {
		v.was.close()
	}
}

// slotKind is what a helper cannot change once it has begun.
type slotKind struct {
	limits Limits
	groups *cgroup.Root
}

// slotKindOf is false for commands whose helper holds no other: those without namespaces of
// toold's own making, with the machine's network, or with connections to hosts by name.
func slotKindOf(c Command, spec helper.Spec) (slotKind, bool) {
	fits := c.Slots != nil && spec.Namespaces && spec.Loopback
	special := spec.Shared || spec.Given || len(spec.Ports) > 0
	p := c.Profile
	return slotKind{p.Limits, p.Groups}, fits && !special
}

// take returns an idle helper of the kind, or nil.
func (s *Slots) take(kind slotKind) *slot {
	for {
		found := s.pop(kind)
		if found == nil || found.isReady() {
			return found
		}
		s.discard(found)
	}
}

func (s *Slots) pop(kind slotKind) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.idle) - 1; i >= 0; i-- {
		if found := s.idle[i]; found.kind == kind {
			s.idle = append(s.idle[:i:i], s.idle[i+1:]...)
			return found
		}
	}
	return nil
}

// Idle is how many helpers wait for a call.
func (s *Slots) Idle() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.idle)
}

// put takes a helper whose call has ended, or ends it.
func (s *Slots) put(t *slot) {
	if !t.mounts.same() {
		t.end()
		s.endIdle(false) // which are older
		return
	}
	drop := t
	s.mu.Lock()
	if !s.closed {
		s.idle, drop = append(s.idle, t), nil
		s.await()
	}
	if len(s.idle) > mostIdleSlots {
		drop, s.idle = s.idle[0], s.idle[1:]
	}
	s.mu.Unlock()
	if drop != nil {
		drop.end()
	}
}

// discard ends a helper beside what the caller does, unless no one would wait for it.
func (s *Slots) discard(t *slot) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		// Ends with the helper. Close waits.
		s.work.Go(t.end)
	}
	s.mu.Unlock()
	if closed {
		t.end()
	}
}

// await has all that are idle ended when calls rest. Called with mu held.
func (s *Slots) await() {
	if s.rest == nil {
		s.rest = time.AfterFunc(restFor, func() { s.endIdle(false) })
		return
	}
	s.rest.Reset(restFor)
}

// Close ends all that are idle, and every other one with its call.
func (s *Slots) Close() {
	s.endIdle(true)
	s.work.Wait()
}

func (s *Slots) endIdle(last bool) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.work.Add(1)
	defer s.work.Done()
	old := s.idle
	s.idle, s.closed = nil, last
	if last && s.rest != nil {
		s.rest.Stop()
	}
	s.mu.Unlock()
	for _, t := range old {
		t.end()
	}
}

// isReady reports whether the helper lives and the machine's mounts are those that it copied.
func (t *slot) isReady() bool {
	gone := false
	raw, err := t.control.SyscallConn()
	if err == nil {
		err = control(raw, func(fd int) error {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(fds, 0)
			gone = n != 0 // it has nothing to say, so it has ended
			return err
		})
	}
	return err == nil && !gone && t.mounts.same()
}

// end ends an idle helper and returns when it is gone, or does not die.
func (t *slot) end() {
	t.control.Close()
	_ = t.cmd.Process.Kill()
	waited(func() { _ = t.cmd.Wait() })
	_ = t.group.End()
	t.letGo()
}

// letGo closes what tells whether the helper can be used again.
func (t *slot) letGo() {
	t.mounts.close()
	t.made.close()
}
