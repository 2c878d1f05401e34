package launch

import (
	"context"
	"syscall"

	"github.com/toold/toold/sandbox/internal/helper"
)

// Wait describes a process that waits for input.
type Wait struct {
	Kind    string // "line", "password" or "tui": single keys
	Process Member
	Stuck   bool // its only thread sleeps in a read: it cannot continue without input
	Deaf    bool // it reads the terminal of standard error, which never has input
}

// Waiting finds a process of the call that waits for input at its terminal or pipe, from the
// kernel's state, never from output. One call at a time, and not together with Runnable.
func (p *Process) Waiting(ctx context.Context) (w Wait, waits bool) {
	event, ok := p.ask(ctx, helper.OrderWaiting, helper.EventWaiting)
	if !ok || event.Wait == "" || len(event.Members) == 0 {
		return Wait{}, false
	}
	return Wait{Kind: event.Wait, Process: event.Members[0], Stuck: event.Sole, Deaf: event.Deaf}, true
}

// ask sends an order and waits for its answer. It returns false if the helper is gone or ctx ends.
func (p *Process) ask(ctx context.Context, order, kind string) (helper.Event, bool) {
	for len(p.answers) > 0 {
		<-p.answers // late answer to an earlier order
	}
	p.order(helper.Order{Kind: order})
	for {
		select {
		case event := <-p.answers:
			if event.Kind == kind {
				return event, true
			}
		case <-p.gone:
			return helper.Event{}, false
		case <-ctx.Done():
			return helper.Event{}, false
		}
	}
}

// Signal sends sig to the foreground process group and returns when that is done, or the helper is
// gone: later input reaches the command with the signal pending or delivered. One Signal or
// SignalShell at a time.
func (p *Process) Signal(sig syscall.Signal) { p.signal(helper.OrderSignal, sig) }

// SignalShell is Signal for the shell itself, not its children.
func (p *Process) SignalShell(sig syscall.Signal) { p.signal(helper.OrderSignalOne, sig) }

func (p *Process) signal(order string, sig syscall.Signal) {
	if !p.order(helper.Order{Kind: order, Signal: int(sig)}) {
		return
	}
	select {
	case <-p.signalled:
	case <-p.gone:
	}
}

// SignalAll sends sig to every process of the call, without waiting.
func (p *Process) SignalAll(sig syscall.Signal) {
	p.order(helper.Order{Kind: helper.OrderSignalAll, Signal: int(sig)})
}

// Wake sends CONT to the stopped processes of the call, without waiting.
func (p *Process) Wake() { p.order(helper.Order{Kind: helper.OrderWake}) }

// Kill kills every process of the call. The helper stays to report.
func (p *Process) Kill() { p.order(helper.Order{Kind: helper.OrderKill}) }

// Refused lists the local sockets of the machine, by path, that the call could not connect to. It
// may be called once Alone is closed.
func (p *Process) Refused() []string { return p.refused }

// Limit returns the limit that the call has met: "memory", for which it was killed, or "processes",
// if it reached the maximum; else "". It may be called once Alone is closed.
func (p *Process) Limit() string { return p.limit }
