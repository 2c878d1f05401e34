package launch

import (
	"context"
	"syscall"

	"github.com/toold/toold/sandbox/internal/helper"
)

// Wait describes a process that waits for input.
type Wait struct {
	Kind    string // "line", "password", or "tui" for single keys
	Process Member
	Stuck   bool // its only thread sleeps in a read: it cannot continue without input
	Deaf    bool // it reads from the terminal that is its standard error, which never has input
}

// Waiting finds a process of the call that waits for input at its terminal or pipe. It uses the state in the kernel,
// never the output. It must not be called concurrently with itself or Runnable.
func (p *Process) Waiting(ctx context.Context) (w Wait, waits bool) {
	event, ok := p.ask(ctx, helper.OrderWaiting, helper.EventWaiting)
	if !ok || event.Wait == "" || len(event.Members) == 0 {
		return Wait{}, false
	}
	return Wait{Kind: event.Wait, Process: event.Members[0], Stuck: event.Sole, Deaf: event.Deaf}, true
}

// ask sends an order and waits for the answer. It returns false if the helper has ended or ctx ends.
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

// Signal sends sig to the foreground process group. It returns when the signal is pending or delivered, so that later
// input follows it, or when the helper has ended. It must not be called concurrently with itself or SignalShell.
func (p *Process) Signal(sig syscall.Signal) { p.signal(helper.OrderSignal, sig) }

// SignalShell is like Signal for the shell alone, not its children.
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

// Kill kills every process of the call. The helper continues, to report.
func (p *Process) Kill() { p.order(helper.Order{Kind: helper.OrderKill}) }

// Refused returns the paths of the machine's local sockets to which the call was not allowed to connect. It may be
// called once Alone is closed.
func (p *Process) Refused() []string { return p.refused }

// Limit returns the limit that the call reached: "memory", for which it was killed, "processes", or "" if none. It
// may be called once Alone is closed.
func (p *Process) Limit() string { return p.limit }
