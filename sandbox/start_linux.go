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

// Process is a started command together with the helper that holds it. Its
// methods may be called from several goroutines, End from one.
type Process struct {
	slot
	via    *bwrap // what cmd is, and who started the helper; nil when cmd is the helper
	report Report
	cookie string // of an unconfined call: the variable its processes carry
	again  bool   // the helper can hold another call after this one
	used   bool   // it has held another one before

	exited    chan struct{}
	alone     chan struct{}
	gone      chan struct{}
	answers   chan helper.Event // to ask
	signalled chan struct{}     // to signal

	// Written by listen: status and known before exited is closed, limit and refused
	// before alone is, left before gone is.
	status  syscall.WaitStatus
	known   bool
	empty   bool // written before alone is closed
	limit   string
	refused []string
	left    *helper.Event
	idle    bool // written before gone is closed: the helper waits for another call

	stuck bool // written by End

	orders sync.Mutex
	ended  bool // OrderEnd was sent, which is the last one

	lent         *Loopback  // where Lend has put it
	borrowed     []*os.File // until it is released
	borrowedFrom []string

	scratch scratch
	doors   doors
	permit  *permit     // nil unless the command is held
	blank   *blankShell // nil when the command was complete from the start
	command Command
	heard   bool // the helper has said that the command runs, or waits for its script
}

// Start confines a fresh helper as the profile says and lets it start the
// command. It returns when the command runs, or when it cannot: a *StageError,
// in which errors.Is finds ErrUnavailable, when it could not be confined, a
// *DirError when its folder cannot be entered. Nothing of the command has run
// then. With Hold it returns at once, and Release tells what Start would have.
//
// The files are the caller's to close. Who gets a Process must call End.
func Start(ctx context.Context, c Command) (*Process, error) {
	p, err := start(ctx, c)
	if errors.Is(err, ErrGone) {
		c.Slots = nil
		return start(ctx, c)
	}
	return p, err
}

// start is Start; the error is ErrGone when a helper was used that had held another command.
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
		p.blank = newBlankShell(c)
	}
	if err = p.launch(c, spec, handed); err == nil && !spec.Hold {
		err = p.hear(ctx)
	}
	if err != nil {
		p.blank.close()
		p.scratch.remove()
		return nil, err
	}
	return p, nil
}

// spec translates the command for the helper. The descriptors go with it.
func (c Command) spec() (spec helper.Spec, handed []*os.File, err error) {
	p := c.Profile
	if err := p.check(); err != nil {
		return spec, nil, err
	}
	spec = helper.Spec{
		View: helper.View{Terminal: c.Terminal}, Dir: c.Dir, DirIs: c.DirIs, Argv: c.Argv, Env: c.Env, Hold: c.Hold && c.Room == 0,
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
		handed = p.Caches.give(&spec)
	} else if p.Workspace != "" && helper.Covered(p.Workspace) {
		spec.Roots = []helper.Root{{Path: p.Workspace}}
	}
	return spec, handed, nil
}

// confine asks for the layers of the profile's tier.
func (p Profile) confine(spec *helper.Spec) {
	spec.Landlock, spec.Seccomp = true, true
	spec.Shared = !p.Tier.apart()
	if p.Tier == TierC {
		spec.Listed, spec.Offline = true, !p.Network
		return
	}
	spec.Namespaces, spec.Loopback = true, !p.Network
	if p.Tier == TierBwrap {
		give(spec)
	}
}

// writable are the same for the helper.
func (p Profile) writable() (roots []helper.Root) {
	for _, root := range p.roots() {
		roots = append(roots, helper.Root{Path: root, Writable: true, Is: p.Pinned[root]})
	}
	return roots
}

// listedRoots are all folders that a call in tier C can open anything in.
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

// ports are those on which the helper listens.
func (p Profile) ports() (ports []uint64) {
	for _, port := range p.Ports {
		if !p.Network && p.Tier != TierC {
			ports = append(ports, uint64(port))
		}
	}
	return ports
}

// helperCommand is this binary again, in fresh namespaces. Nobody has a number in them
// until it gives the user the one that it had; all capabilities would be lost at exec,
// so those that the set-up needs are ambient.
//
// The new process shares the daemon's memory until it is this binary (CLONE_VM), and
// that waits for it (CLONE_VFORK), as in every other start. os/exec would have it copy
// the page tables, because it has the parent map the user meanwhile; and whatever the
// daemon wrote to afterwards would be a page fault.
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
		if len(spec.Overlays) > 0 { // which act with the capabilities of who made them
			sys.AmbientCaps = append(sys.AmbientCaps, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN)
		}
	}
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"toold", helper.Marker},
		Env:   []string{"GOMAXPROCS=2"}, // spares the runtime a reading of the cgroup's files
		Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
		ExtraFiles: []*os.File{control}, SysProcAttr: sys,
	}
}

// maxEvent is more than any report of a helper has, in bytes.
const maxEvent = 64 << 10

// next waits for the helper's next report. It uses buf, which has maxEvent bytes.
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

// listen takes the helper's reports until it is gone.
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
			default: // nobody waits any more
			}
		case helper.EventSignalled:
			p.signalled <- struct{}{} // one waits for each
		case helper.EventGiven, helper.EventFailed:
			p.blank.answered(event)
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

// noteTrouble keeps what a command met, and reports whether the event tells of such.
func (p *Process) noteTrouble(e helper.Event) bool {
	switch {
	case e.Kind == helper.EventRefused:
		p.refused = append(p.refused, e.Text)
	case e.Kind == helper.EventLimit && p.limit != helper.LimitMemory:
		p.limit = e.Text
	}
	return e.Kind == helper.EventRefused || e.Kind == helper.EventLimit
}

// noteMet learns from the control group which limit the call has met.
func (p *Process) noteMet() {
	switch met := p.group.Met(); {
	case met.Memory:
		p.limit = helper.LimitMemory
	case met.Processes && p.limit == "":
		p.limit = helper.LimitProcesses
	}
}

// PID returns the helper's process number.
func (p *Process) PID() int {
	if p.via != nil && p.via.helper != nil {
		return p.via.pid
	}
	return p.cmd.Process.Pid
}

// Identity names the helper beyond the reuse of process numbers; see KillIdentity.
func (p *Process) Identity() string { return p.identity }

// Report tells what confines the command.
func (p *Process) Report() Report { return p.report }

// Exited is closed when the command itself has ended, or its helper was lost.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Alone is closed when no process of the call is left besides the helper, or the
// helper was lost; see Empty.
func (p *Process) Alone() <-chan struct{} { return p.alone }

// Empty reports whether the helper has said that no process is left. It may be called
// once Alone is closed; else the helper was lost, and what it held may still be dying.
func (p *Process) Empty() bool { return p.empty }

// Status returns how the command ended. It may be called once Exited is closed.
// It is false when the helper was killed and took the command with it.
func (p *Process) Status() (syscall.WaitStatus, bool) { return p.status, p.known }

// Runnable reports whether a process of the call runs or waits for a disk. When
// the helper does not tell until ctx ends, it says yes. One call at a time.
func (p *Process) Runnable(ctx context.Context) bool {
	event, ok := p.ask(ctx, helper.OrderList, helper.EventMembers)
	return ok && event.Runnable || !ok && ctx.Err() != nil
}

// order tells the helper, without waiting, and reports whether it was told. One that
// is gone needs no orders, nor does one whose socket is full: it is stopped and reads
// none. One that an unconfined call has stopped is woken for them.
func (p *Process) order(o helper.Order) (told bool) {
	told = p.orderWith(o) == nil
	if p.cookie != "" {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}
	return told
}

// orderWith is order with descriptors. Nothing is sent after OrderEnd: the helper may hold
// another call by then.
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

// destroy kills the helper, and with it, where there are namespaces, everything.
func (p *Process) destroy() {
	if p.via != nil && p.via.helper != nil {
		_ = p.via.helper.Kill() // and bwrap ends with it; to kill bwrap would leave it
		return
	}
	_ = p.cmd.Process.Kill()
}

// End kills what is left of the call, waits until it and its helper are gone,
// and returns what had been left. It must be called once.
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
		if p.giveBack() {
			p.blank.close()
			return p.left.Members
		}
	case <-patience.C:
		p.destroy()
	}
	p.control.Close() // a helper that cannot even die does not hold up the caller
	p.doors.close()
	<-p.gone
	p.blank.close()
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

// Again reports whether the helper may hold another call when this one has ended.
func (p *Process) Again() bool { return p.again }

// giveBack lets the helper hold another call, if it can. One that met a limit cannot: whether
// the next call meets it could not be seen.
func (p *Process) giveBack() bool {
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
