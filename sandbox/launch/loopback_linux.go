package launch

import (
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

// Loopback lets the calls of a conversation connect to the TCP servers of its background calls, at loopback ports on
// which the call itself does not listen. Calls with network access, or with hosts by name, do not take part. The zero
// value is ready to use; nil has no effect.
type Loopback struct {
	mu      sync.Mutex
	lenders map[*Process]string
}

// lendable reports whether the command has a private network without any host.
func lendable(p *Process) bool {
	c := p.command.Profile
	isolated := c.Mode != sandbox.FullAccess && c.Tier != sandbox.TierC
	return isolated && !c.Network && len(c.Ports) == 0
}

// Lend makes the servers of a running command reachable under a name until End.
func (p *Process) Lend(l *Loopback, name string) {
	if l == nil || !lendable(p) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lenders == nil {
		l.lenders = map[*Process]string{}
	}
	l.lenders[p], p.lent = name, l
}

func (p *Process) takeBack() {
	p.closeBorrowed()
	if p.lent == nil {
		return
	}
	p.lent.mu.Lock()
	defer p.lent.mu.Unlock()
	delete(p.lent.lenders, p)
}

// Borrow lets a command that is about to be released connect to all lent servers; see Borrowed.
func (p *Process) Borrow(l *Loopback) {
	if l == nil || !lendable(p) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lender := range slices.SortedFunc(maps.Keys(l.lenders), func(a, b *Process) int { return a.PID() - b.PID() }) {
		const most = 16
		if len(p.borrowed) == most {
			return
		}
		end, err := lender.lendTo()
		if err != nil {
			continue // it is ending
		}
		p.borrowed, p.borrowedFrom = append(p.borrowed, end), append(p.borrowedFrom, l.lenders[lender])
	}
}

// Borrowed returns the names of the servers that a released command can reach.
func (p *Process) Borrowed() []string {
	if !slices.Contains(p.report.Enforced, "sockets") { // the helper does not broker connections
		return nil
	}
	return p.borrowedFrom
}

func (p *Process) lendTo() (*os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fds[0])
	other := os.NewFile(uintptr(fds[1]), "loopback")
	if err := p.orderWith(helper.Order{Kind: helper.OrderLend}, fds[0]); err != nil {
		other.Close()
		return nil, err
	}
	return other, nil
}

// goAhead releases the command with the borrowed sockets.
func (p *Process) goAhead() {
	defer p.closeBorrowed()
	var fds []int
	for _, f := range p.borrowed {
		fds = append(fds, int(f.Fd()))
	}
	if len(fds) == 0 || p.orderWith(helper.Order{Kind: helper.OrderGo}, fds...) != nil {
		p.order(helper.Order{Kind: helper.OrderGo})
	}
}

func (p *Process) closeBorrowed() {
	for _, f := range p.borrowed {
		f.Close()
	}
	p.borrowed = nil
}
