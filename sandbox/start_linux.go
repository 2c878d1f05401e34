package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/helper"
)

// masking: see Profile.Masking.
const masking = true

// endWithin is how long a helper may take to end a call.
const endWithin = 10 * time.Second

// Process is a started command and its helper. Methods may be called concurrently, End from one
// goroutine.
type Process struct {
	slot
	via    *bwrap // cmd, if bwrap started the helper; nil if cmd is the helper
	report Report
	cookie string // of an unconfined call: the environment variable of its processes
	again  bool   // the helper can run another call after this one
	used   bool   // it has run another call before

	exited    chan struct{}
	alone     chan struct{}
	gone      chan struct{}
	answers   chan helper.Event // for ask
	signalled chan struct{}     // for signal

	// Written by listen: status and known before exited is closed, limit and refused before alone is,
	// left before gone is.
	status  syscall.WaitStatus
	known   bool
	empty   bool // written before alone is closed
	limit   string
	refused []string
	left    *helper.Event
	idle    bool // written before gone is closed: the helper waits for another call

	stuck bool // written by End

	orders sync.Mutex
	ended  bool // OrderEnd, the last order, was sent

	lent         *Loopback  // set by Lend
	borrowed     []*os.File // until it is released
	borrowedFrom []string

	scratch        scratch
	proxyListeners proxyListeners
	permit         *permit    // nil unless reserved
	warm           *warmShell // nil if the command was complete from the start
	command        Command
	heard          bool // the helper has reported that the command runs, or waits for its script
}

// Start confines a fresh helper as the profile says and makes it start the command. It returns when
// the command runs, or an error: a *StageError, which wraps ErrUnavailable, if it could not be
// confined, a *DirError if its directory cannot be entered. Nothing of the command has run then.
// With Reserve it returns at once, and Release returns these errors.
//
// The caller closes the files, and must call End of the Process.
func Start(ctx context.Context, c Command) (*Process, error) {
	p, err := start(ctx, c)
	if errors.Is(err, ErrGone) {
		c.Slots = nil
		return start(ctx, c)
	}
	return p, err
}

// start is Start; the error is ErrGone if a reused helper failed.
func start(ctx context.Context, c Command) (*Process, error) {
	spec, handed, err := c.spec()
	if err != nil {
		return nil, &StageError{Stage: "profile", Err: err}
	}
	tmp, err := newScratch(c.Profile, &spec)
	if err != nil {
		return nil, &StageError{Stage: "profile", Err: err}
	}
	p := &Process{
		scratch: tmp,
		exited:  make(chan struct{}), alone: make(chan struct{}), gone: make(chan struct{}),
		answers: make(chan helper.Event, 4), signalled: make(chan struct{}, 1),
	}
	if c.Profile.Mode == FullAccess || !c.Profile.Tier.apart() { // no namespace ends with the helper
		p.cookie = "TOOLD_CALL=" + rand.Text()
		spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], p.cookie)
	}
	if p.kind, p.again = slotKindOf(c, spec); p.again {
		spec.Again = true
	}
	if c.Room > 0 {
		p.warm = newWarmShell(c)
	}
	if err = p.launch(c, spec, handed); err == nil && !spec.Reserve {
		err = p.hear(ctx)
	}
	if err != nil {
		p.warm.close()
		p.scratch.remove()
		return nil, err
	}
	return p, nil
}

// spec translates the command for the helper, with its descriptors.
func (c Command) spec() (spec helper.Spec, handed []*os.File, err error) {
	p := c.Profile
	if err := p.check(); err != nil {
		return spec, nil, err
	}
	spec = helper.Spec{
		View: helper.View{Terminal: c.Terminal}, Dir: c.Dir, DirIs: c.DirIs, Argv: c.Argv, Env: c.Env, Reserve: c.Reserve && c.Room == 0,
		Room: uint64(c.Room), OpenFiles: p.Limits.OpenFiles, FileBytes: p.Limits.FileBytes,
		MemoryBytes: p.Limits.MemoryBytes, Processes: p.Limits.Processes, Counted: p.Groups != nil,
	}
	if p.Mode == FullAccess {
		return spec, nil, nil
	}
	p.confine(&spec)
	spec.Hide, spec.Sockets, spec.TmpBytes = p.Hide, p.Sockets, p.Limits.TmpBytes
	spec.Ports = p.ports()
	if p.Tier == TierC {
		spec.Roots = p.listedRoots()
		return spec, nil, nil
	}
	spec.Masks = pathsOf(p.masks().Hidden)
	if p.Mode == WorkspaceWrite {
		spec.Roots = p.writable()
		spec.Protect = p.fixed()
		handed = p.Caches.addTo(&spec)
	} else if p.Workspace != "" && helper.Covered(p.Workspace) {
		spec.Roots = []helper.Root{{Path: p.Workspace}}
	}
	return spec, handed, nil
}

// confine selects the layers of the profile's tier.
func (p Profile) confine(spec *helper.Spec) {
	spec.Landlock, spec.Seccomp = true, true
	spec.Shared = !p.Tier.apart()
	if p.Tier == TierC {
		spec.Listed, spec.Offline = true, !p.Network
		return
	}
	spec.Namespaces, spec.Loopback = true, !p.Network
	if p.Tier == TierBwrap {
		useBwrap(spec)
	}
}

func (p Profile) writable() (roots []helper.Root) {
	for _, root := range p.roots() {
		roots = append(roots, helper.Root{Path: root, Writable: true, Is: p.Pinned[root]})
	}
	return roots
}

// listedRoots returns all directories in which a call in tier C can open files.
func (p Profile) listedRoots() (roots []helper.Root) {
	if p.Mode == WorkspaceWrite {
		roots = p.writable()
	} else if p.Workspace != "" {
		roots = append(roots, helper.Root{Path: p.Workspace})
	}
	for _, dir := range p.Read {
		if p.Mode != WorkspaceWrite || !p.inRoot(dir) {
			roots = append(roots, helper.Root{Path: dir})
		}
	}
	return roots
}

// ports returns the ports on which the helper listens.
func (p Profile) ports() (ports []uint64) {
	for _, port := range p.Ports {
		if !p.Network && p.Tier != TierC {
			ports = append(ports, uint64(port))
		}
	}
	return ports
}

// helperCommand starts this binary in fresh namespaces. Its user namespace maps no one until it
// maps its user to itself; exec would drop all capabilities, so those that the setup needs are
// ambient.
//
// The new process shares the daemon's memory until exec (CLONE_VM), and the daemon waits for it
// (CLONE_VFORK), as in every other start. With os/exec's own mapping of users, fork would copy the
// page tables, and every later write of the daemon would be a page fault.
func helperCommand(c Command, spec helper.Spec, control *os.File) *exec.Cmd {
	sys := &syscall.SysProcAttr{Setsid: true, Setctty: c.Terminal && !spec.Again}
	if spec.Namespaces {
		sys.Cloneflags = unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		if !spec.Shared {
			sys.Cloneflags |= unix.CLONE_NEWPID
		}
		if spec.Loopback {
			sys.Cloneflags |= unix.CLONE_NEWNET
		}
		sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
		if spec.Again {
			sys.AmbientCaps = append(sys.AmbientCaps, unix.CAP_SYS_CHROOT)
		}
		if len(spec.Ports) > 0 {
			sys.AmbientCaps = append(sys.AmbientCaps, unix.CAP_NET_BIND_SERVICE)
		}
		if len(spec.Overlays) > 0 { // overlays act with the capabilities of their creator
			sys.AmbientCaps = append(sys.AmbientCaps, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN)
		}
	}
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"toold", helper.Marker},
		Env:   []string{"GOMAXPROCS=2"}, // saves the runtime reading the cgroup's files
		Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		ExtraFiles: []*os.File{control}, SysProcAttr: sys,
	}
}

// maxEvent is larger than any event of a helper, in bytes.
const maxEvent = 64 << 10

// next waits for the helper's next event. It uses buf, which has maxEvent bytes.
func (p *Process) next(buf []byte) (helper.Event, error) {
	n, err := p.control.Read(buf)
	if ended(err) {
		n, err = p.control.Read(buf)
	}
	if err != nil {
		return helper.Event{}, err
	}
	return helper.DecodeEvent(buf[:n])
}

// listen receives the helper's events until it is gone.
func (p *Process) listen() {
	defer close(p.gone)
	exited, alone := p.exited, p.alone
	once := func(c *chan struct{}) {
		if *c != nil {
			close(*c)
			*c = nil
		}
	}
	defer once(&alone)
	defer once(&exited)
	buf := make([]byte, maxEvent)
	for {
		event, err := p.next(buf)
		if alone != nil && (err != nil || event.Kind == helper.EventExited || event.Kind == helper.EventAlone) {
			p.noteMet()
		}
		if err != nil {
			return
		}
		switch event.Kind {
		case helper.EventExited:
			p.status, p.known = syscall.WaitStatus(event.Status), true
			once(&exited)
		case helper.EventMembers, helper.EventWaiting:
			select {
			case p.answers <- event:
			default: // no one waits any more
			}
		case helper.EventSignalled:
			p.signalled <- struct{}{} // one caller waits for each
		case helper.EventScriptSet, helper.EventFailed:
			p.warm.answered(event)
		case helper.EventLimit, helper.EventRefused:
			if alone != nil {
				p.noteTrouble(event)
			}
		case helper.EventLeft:
			p.left = &event
		case helper.EventIdle:
			p.idle = true
			return
		}
		if event.Alone || event.Kind == helper.EventAlone {
			p.empty = true
			once(&alone)
		}
	}
}

// noteTrouble records limits and refusals, and reports whether the event is one.
func (p *Process) noteTrouble(e helper.Event) bool {
	switch {
	case e.Kind == helper.EventRefused:
		p.refused = append(p.refused, e.Text)
	case e.Kind == helper.EventLimit && p.limit != helper.LimitMemory:
		p.limit = e.Text
	}
	return e.Kind == helper.EventRefused || e.Kind == helper.EventLimit
}

// noteMet reads from the control group which limit the call has met.
func (p *Process) noteMet() {
	switch met := p.group.Met(); {
	case met.Memory:
		p.limit = helper.LimitMemory
	case met.Processes && p.limit == "":
		p.limit = helper.LimitProcesses
	}
}

// PID returns the helper's pid.
func (p *Process) PID() int {
	if p.via != nil && p.via.helper != nil {
		return p.via.pid
	}
	return p.cmd.Process.Pid
}

// Identity identifies the helper despite pid reuse; see KillIdentity.
func (p *Process) Identity() string { return p.identity }

// Report returns what confines the command.
func (p *Process) Report() Report { return p.report }

// Exited is closed when the command's first process has ended, or its helper was lost.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Alone is closed when the helper is the only process left, or was lost; see Empty.
func (p *Process) Alone() <-chan struct{} { return p.alone }

// Empty reports whether the helper has reported that no process is left. It may be called once
// Alone is closed; if false, the helper was lost, and its processes may still be dying.
func (p *Process) Empty() bool { return p.empty }

// Status returns how the command ended. It may be called once Exited is closed. It returns false if
// the helper was killed and took the command with it.
func (p *Process) Status() (syscall.WaitStatus, bool) { return p.status, p.known }

// Runnable reports whether a process of the call runs or waits for a disk. It returns true if the
// helper does not answer until ctx ends. One call at a time.
func (p *Process) Runnable(ctx context.Context) bool {
	event, ok := p.ask(ctx, helper.OrderList, helper.EventMembers)
	return ok && event.Runnable || !ok && ctx.Err() != nil
}

// order sends an order without waiting, and reports whether it was sent. A helper that is gone
// needs no orders, nor does one whose socket is full: it is stopped. A helper that an unconfined
// call has stopped gets CONT.
func (p *Process) order(o helper.Order) (sent bool) {
	sent = p.orderWith(o) == nil
	if p.cookie != "" {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}
	return sent
}

// orderWith is order with descriptors. Nothing is sent after OrderEnd: the helper may run another
// call by then.
func (p *Process) orderWith(o helper.Order, fds ...int) error {
	p.orders.Lock()
	defer p.orders.Unlock()
	if p.ended {
		return errEnded
	}
	p.ended = o.Kind == helper.OrderEnd
	raw, err := p.control.SyscallConn()
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return control(raw, func(socket int) error {
		return unix.Sendmsg(socket, o.Encode(), rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	})
}

var errEnded = errors.New("the call has ended")

// destroy kills the helper, and with it, if there are namespaces, all its processes.
func (p *Process) destroy() {
	if p.via != nil && p.via.helper != nil {
		_ = p.via.helper.Kill() // bwrap ends with it; killing bwrap would leave the helper
		return
	}
	_ = p.cmd.Process.Kill()
}

// End kills what is left of the call, waits until it and its helper are gone, and returns what had
// been left. It must be called once.
func (p *Process) End() []Member {
	defer p.scratch.remove()
	if !p.heard {
		p.abandon() // nothing of the command has run
		return nil
	}
	p.takeBack()
	p.order(helper.Order{Kind: helper.OrderEnd})
	patience := time.NewTimer(endWithin)
	defer patience.Stop()
	select {
	case <-p.gone:
		if p.returnHelper() {
			p.warm.close()
			return p.left.Members
		}
	case <-patience.C:
		p.destroy()
	}
	p.control.Close() // a helper that does not die must not block the caller
	p.proxyListeners.close()
	<-p.gone
	p.warm.close()
	p.stuck = !p.reap()
	if p.group.End() != nil {
		p.stuck = true
	}
	p.letGo()
	if p.left == nil && p.cookie != "" && !sweepOrphans(p.PID(), p.cookie) {
		p.stuck = true
	}
	if p.left == nil {
		return nil
	}
	return p.left.Members
}

// Again reports whether the helper may run another call after this one.
func (p *Process) Again() bool { return p.again }

// returnHelper makes the helper available for another call, if possible. A helper that met a limit
// ends: whether the next call meets it could not be detected.
func (p *Process) returnHelper() bool {
	if !p.idle || p.left == nil {
		return false
	}
	if p.limit != "" || !p.group.Fresh() {
		return false
	}
	t := p.slot
	p.command.Slots.put(&t)
	return true
}
