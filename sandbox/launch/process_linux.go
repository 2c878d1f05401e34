package launch

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

// endWithin limits how long a helper may take to end a call.
const endWithin = 10 * time.Second

// Process is a started command and its helper. It is safe for concurrent use, except where a method says otherwise.
type Process struct {
	slot
	via    *bwrap // if bwrap started the helper, then cmd is bwrap; nil if cmd is the helper
	report sandbox.Report
	cookie string // of an unconfined call: environment variable of its processes
	again  bool   // the helper can run another call after this one
	used   bool   // the helper has run another call before

	exited    chan struct{}     // closed when the first process has ended, or the helper was lost
	alone     chan struct{}     // closed when only the helper is left, or it was lost
	gone      chan struct{}     // closed when listen returns: the helper has ended, or is free for another call
	answers   chan helper.Event // for ask
	signalled chan struct{}     // for signal

	// Written by listen: status and known before exited is closed, limit and refused before alone, left before gone.
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
	abandoned      bool
	heard          bool // the command runs, waits for its script, or may have started before the helper was lost
}

// maxEvent is larger than any event, in bytes.
const maxEvent = 64 << 10

// next waits for the helper's next event.
func (p *Process) next() (helper.Event, error) {
	buf := p.eventBuffer()
	n, err := p.control.Read(buf)
	if ended(err) {
		n, err = p.control.Read(buf)
	}
	if err != nil {
		return helper.Event{}, err
	}
	return helper.DecodeEvent(buf[:n])
}

func (p *Process) eventBuffer() []byte {
	if p.event == nil {
		p.event = make([]byte, maxEvent)
	}
	return p.event
}

// listen receives the helper's events until the helper ends, or is idle after the call.
func (p *Process) listen() {
	defer close(p.gone)
	exited := sync.OnceFunc(func() { close(p.exited) })
	alone := sync.OnceFunc(func() { close(p.alone) })
	defer alone()
	defer exited()
	for {
		event, err := p.next()
		ends := err != nil || event.Kind == helper.EventExited || event.Kind == helper.EventAlone
		if ends && !p.empty {
			p.noteMet()
		}
		if err != nil {
			return
		}
		switch event.Kind {
		case helper.EventExited:
			p.status, p.known = syscall.WaitStatus(event.Status), true
			exited()
		case helper.EventLimit, helper.EventRefused:
			if !p.empty {
				p.noteTrouble(event)
			}
		case helper.EventLeft:
			p.left = &event
		case helper.EventIdle:
			p.idle = true
			return
		default:
			p.pass(event)
		}
		if event.Alone || event.Kind == helper.EventAlone {
			p.empty = true
			alone()
		}
	}
}

func (p *Process) pass(e helper.Event) {
	switch e.Kind {
	case helper.EventMembers, helper.EventWaiting:
		select {
		case p.answers <- e:
		default: // the method has returned
		}
	case helper.EventSignalled:
		p.signalled <- struct{}{} // one caller waits for each
	case helper.EventScriptSet, helper.EventFailed:
		p.warm.answered(e)
	}
}

// noteTrouble records a limit or a refusal. It reports whether the event is one, since firstWord skips these.
func (p *Process) noteTrouble(e helper.Event) bool {
	switch {
	case e.Kind == helper.EventRefused:
		p.refused = append(p.refused, e.Text)
	case e.Kind == helper.EventLimit && p.limit != helper.LimitMemory:
		p.limit = e.Text
	}
	return e.Kind == helper.EventRefused || e.Kind == helper.EventLimit
}

// noteMet reads from the control group which limit the call has reached.
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

// Identity returns the identity of the helper for KillIdentity, which does not depend on the pid alone.
func (p *Process) Identity() string { return p.identity }

// Report returns what confines the command.
func (p *Process) Report() sandbox.Report { return p.report }

// Exited is closed when the command's first process has ended, or its helper was lost.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Alone is closed when the helper is the only process left, or was lost; see Empty.
func (p *Process) Alone() <-chan struct{} { return p.alone }

// Empty reports whether the helper has reported that no process is left. If not, the helper was lost, and its
// processes may still be ending. It may be called once Alone is closed.
func (p *Process) Empty() bool { return p.empty }

// Status returns how the command ended, or false if the helper was killed and the command with it. It may be called
// once Exited is closed.
func (p *Process) Status() (syscall.WaitStatus, bool) { return p.status, p.known }

// Runnable reports whether a process of the call runs or waits for a disk. It returns true if ctx ends before the
// helper answers, and false if the helper has ended. It must not be called concurrently with itself or Waiting.
func (p *Process) Runnable(ctx context.Context) bool {
	event, ok := p.ask(ctx, helper.OrderList, helper.EventMembers)
	if !ok {
		return ctx.Err() != nil
	}
	return event.Runnable
}

// order sends an order without waiting, and reports whether it was sent. It drops the order if the helper has ended,
// or if the socket is full because the helper is stopped. It sends CONT to a helper that an unconfined call has
// stopped.
func (p *Process) order(o helper.Order) (sent bool) {
	sent = p.orderWith(o) == nil
	if p.cookie != "" {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
	}
	return sent
}

// orderWith is order with descriptors. It sends nothing after OrderEnd, when the helper may already run another call.
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

// destroy kills the helper and, if there are namespaces, all processes in them.
func (p *Process) destroy() {
	if p.via != nil && p.via.helper != nil {
		_ = p.via.helper.Kill() // bwrap ends with it; killing bwrap would not end the helper
		return
	}
	_ = p.cmd.Process.Kill()
}

// End kills the remaining processes of the call and returns them. It waits until they and the helper have ended, or
// makes the helper available for another call. It gives up if the kernel does not end them in time; see Stuck. It
// must be called once.
func (p *Process) End() []Member {
	defer p.scratch.remove()
	if p.abandoned {
		return nil // its descriptors may already belong to another call
	}
	if !p.heard {
		p.abandon() // nothing of the command has run
		return nil
	}
	p.takeBack()
	p.order(helper.Order{Kind: helper.OrderEnd})
	defer p.proxyListeners.close()
	select {
	case <-p.gone:
		if p.returnHelper() {
			p.warm.close()
			return p.left.Members
		}
	case <-time.After(endWithin):
		p.destroy()
	}
	p.control.Close() // a helper that does not end must not block the caller
	<-p.gone
	p.warm.close()
	p.stuck = !p.reap()
	if p.group.End() != nil {
		p.stuck = true
	}
	p.letGo()
	if !p.empty && p.cookie != "" && !sweepOrphans(p.PID(), p.cookie) {
		p.stuck = true
	}
	if p.left == nil {
		return nil
	}
	return p.left.Members
}

// Again reports whether the helper can run another call after this one.
func (p *Process) Again() bool { return p.again }

// returnHelper makes the helper available for another call, and reports whether it did. It does not after a limit was
// reached, since a second time could not be detected.
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
