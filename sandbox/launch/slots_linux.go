package launch

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/cgroup"
	"github.com/toold/toold/sandbox/internal/helper"
	"github.com/toold/toold/sandbox/internal/snapshot"
)

const (
	mostIdleSlots = 64
	// restFor is how long no call must have ended before idle helpers are ended.
	restFor = time.Second
)

// Slots keeps the helpers of ended calls for later calls: see Command.Slots. The zero value is ready to use; nil
// keeps none. It is safe for concurrent use.
type Slots struct {
	work sync.WaitGroup // helpers that are ending

	inputs snapshot.Shared // of warm shells

	mu     sync.Mutex
	idle   []*slot     // most recently used last
	rest   *time.Timer // ends all idle helpers; nil before the first
	closed bool
}

// slot is a helper with its namespaces and its control group.
type slot struct {
	cmd      *exec.Cmd
	control  *os.File
	event    []byte // buffer of the one goroutine that receives events; nil before the first
	group    *cgroup.Group
	identity string
	kind     slotKind
	mounts   *snapshot.Host // state from which the mounts of its base were copied
	made     *view          // its latest view
}

// view is the input from which a helper's view was made.
type view struct {
	helper.View
	caches any // version
	was    *snapshot.Cached
}

// inputsOf returns the host's directories and files on which the sandbox of a command depends.
func inputsOf(c Command) (dirs, files []string) {
	p := c.Profile
	dirs = append([]string{c.Dir}, p.Write...)
	if p.Workspace != "" {
		dirs = append(dirs, p.Workspace)
	}
	return dirs, slices.Concat([]string{c.Argv[0], "/etc/resolv.conf"}, p.Hide, p.Fixed(), p.Masked(), p.Sockets)
}

// viewOf records the input of a view. It must be called before the view is made.
func viewOf(c Command, v helper.View) *view {
	dirs, files := inputsOf(c)
	dirs = append(dirs, helper.WaysTo(v)...) // pinned by the view
	return &view{v, c.Profile.Caches.Version(), snapshot.TakeCached(dirs, files)}
}

func (v *view) fits(c Command, needs helper.View) bool {
	return v.caches == c.Profile.Caches.Version() && reflect.DeepEqual(v.View, needs) && v.was.Same()
}

func (v *view) close() {
	if v != nil {
		v.was.Close()
	}
}

// slotKind is what a helper cannot change after its start.
type slotKind struct {
	unconfined bool
	network    bool   // the machine's
	ports      string // see helper.Spec
	limits     sandbox.Limits
	groups     *cgroup.Root
}

// slotKindOf returns false for confined commands without namespaces made by toold, whose helper cannot run another.
func slotKindOf(c Command, spec helper.Spec) (slotKind, bool) {
	p := c.Profile
	unconfined := p.Mode == sandbox.FullAccess
	own := spec.Namespaces && !spec.Shared && !spec.External
	return slotKind{unconfined, !spec.Loopback, fmt.Sprint(spec.Ports), p.Limits, p.Groups}, c.Slots != nil && (unconfined || own)
}

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

// Idle returns the number of idle helpers.
func (s *Slots) Idle() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.idle)
}

// put keeps a helper whose call has ended, or ends it.
func (s *Slots) put(t *slot) {
	if !t.mounts.Same() {
		t.end()
		s.endIdle(false) // older ones
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

// discard ends a helper in the background. It does nothing after Close, which could not wait for it.
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

// await ends all idle helpers after no call has ended for restFor. The caller holds mu.
func (s *Slots) await() {
	if s.rest == nil {
		s.rest = time.AfterFunc(restFor, func() { s.endIdle(false) })
		return
	}
	s.rest.Reset(restFor)
}

// Close ends all idle helpers now, and the others when their calls end.
func (s *Slots) Close() {
	s.endIdle(true)
	s.work.Wait()
	s.inputs.Close()
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

// isReady reports whether the helper is alive and the machine's mounts are unchanged.
func (t *slot) isReady() bool {
	gone := false
	raw, err := t.control.SyscallConn()
	if err == nil {
		err = control(raw, func(fd int) error {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(fds, 0)
			gone = n != 0 // an idle helper sends nothing, so it has ended
			return err
		})
	}
	return err == nil && !gone && t.mounts.Same()
}

// end ends an idle helper. It returns when the helper has ended, or does not end in time.
func (t *slot) end() {
	t.control.Close()
	_ = t.cmd.Process.Kill()
	waited(func() { _ = t.cmd.Wait() })
	_ = t.group.End()
	t.letGo()
}

// letGo closes the descriptors that are only needed to reuse the helper.
func (t *slot) letGo() {
	t.mounts.Close()
	t.made.close()
}
