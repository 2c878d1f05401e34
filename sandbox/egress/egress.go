// Package egress carries the connections of a confined call to the hosts that it
// may reach, by name.
//
// The call has a network of its own, in which every address leads to listeners
// that the daemon holds. A program asks for a name (see Server.Serve), gets an
// address that stands for it, connects, and is joined to a connection that the
// daemon makes. Programs need not know: no variable names a proxy. What may be
// reached is decided by whoever makes the Server; the package itself only refuses
// addresses that no public name should lead to, and names that are none.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/internal/loopback"
)

// Options say how a Server decides and connects. Allow is needed.
type Options struct {
	// Allow decides whether host, a name in lower case or an address, may be contacted at one
	// of the ports; nil allows it. It may wait for a person, ends with ctx, and is called from
	// several goroutines.
	Allow func(ctx context.Context, host string, ports []uint16) error

	// Private are networks that may be reached although they are not public.
	Private []netip.Prefix

	// OtherNames lets what is said first be TLS for another name than the one that was
	// asked for.
	OtherNames bool

	// Revoked waits until host must not be contacted at port any more and returns why,
	// or nil when ctx ends: a connection that exists ends with it. It is called from
	// several goroutines. Nil = what was allowed stays so.
	Revoked func(ctx context.Context, host string, port uint16) error
	// Places bounds the connections of all Servers that share it. Nil = no bound but
	// that of each call.
	Places *Places

	// Lookup finds the addresses of a name; nil = as this machine does.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address; nil = from this machine.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Refusal is a host that a call could not reach because somebody decided so.
type Refusal struct {
	Host string
	Port uint16 // 0 = already its name was refused
	// Address is the one that was refused of those that Host has; the zero value
	// means the host itself. Others tells that others of them may be contacted.
	Address netip.Addr
	Others  bool
	Why     error
}

const (
	maxNames       = 4096 // of a call
	maxQuestions   = 128  // that wait for an answer at a time
	maxConnections = 256  // of a call at a time; more wait
	maxLookups     = 8    // of a call at a time; each takes descriptors of the daemon
	maxRefusals    = 16   // that are remembered

	freshFor    = time.Minute // how long addresses of a name are used
	dialTimeout = 30 * time.Second
)

// Server serves one call.
type Server struct {
	opt     Options
	ports   []uint16      // on which it listens
	lookups chan struct{} // one element for each that is made
	held    int           // of Places, which guards it

	mu       sync.Mutex
	names    map[string]*name
	stands   map[netip.Addr]*name // for what a made-up address stands
	next     uint32
	refusals []Refusal
}

type name struct {
	host    string
	address netip.Addr // made up
	busy    chan struct{}

	// Guarded by busy, a lock that can be given up waiting for.
	found []netip.Addr
	since time.Time
}

// New returns a Server for a call.
func New(o Options) *Server {
	if o.Lookup == nil {
		o.Lookup = lookup
	}
	if o.Dial == nil {
		o.Dial = dial
	}
	if o.Places == nil {
		o.Places = NewPlaces(4 * maxConnections)
	}
	return &Server{opt: o, lookups: make(chan struct{}, maxLookups), names: map[string]*name{}, stands: map[netip.Addr]*name{}}
}

// Serve answers the questions for names that come to dns and joins the connections
// that come to the listeners, until ctx ends. It closes all of them and returns
// when nothing of it is left running. It is called once.
func (s *Server) Serve(ctx context.Context, dns net.PacketConn, listeners []net.Listener) {
	for _, l := range listeners {
		s.ports = append(s.ports, portOf(l.Addr()))
	}
	var all sync.WaitGroup
	stop := context.AfterFunc(ctx, func() {
		dns.Close()
		for _, l := range listeners {
			wake(l)
		}
	})
	defer stop()
	// Ends when the socket is closed.
	all.Go(func() { s.answerQuestions(ctx, dns) })
	for _, l := range listeners {
		// Ends with ctx.
		all.Go(func() {
			defer l.Close()
			s.accept(ctx, l)
			s.noteLate(l)
		})
	}
	<-ctx.Done()
	all.Wait()
}

// Refusals are the first hosts that the call could not reach, each once.
func (s *Server) Refusals() []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Refusal(nil), s.refusals...)
}

func (s *Server) refuse(host string, port uint16, why error) error {
	s.remember(Refusal{Host: host, Port: port, Why: why})
	return why
}

// remember keeps the first refusals, each once.
func (s *Server) remember(refused Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.refusals {
		if r.Host == refused.Host && r.Address == refused.Address && (r.Port == refused.Port || r.Port == 0) {
			return
		}
	}
	if len(s.refusals) < maxRefusals {
		s.refusals = append(s.refusals, refused)
	}
}

// allowed asks whether host may be contacted.
func (s *Server) allowed(ctx context.Context, host string, port uint16) error {
	ports := []uint16{port}
	if port == 0 {
		ports = s.ports
	}
	if err := s.opt.Allow(ctx, host, ports); err != nil {
		return s.refuse(host, port, err)
	}
	return nil
}

var errTooMany = errors.New("the call has asked for too many names")

// named is the one record of a name. There is no end of names that a call can
// think of.
func (s *Server) named(host string) (*name, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.names[host]; n != nil {
		return n, nil
	}
	if len(s.names) == maxNames {
		return nil, errTooMany
	}
	s.next++
	n := &name{host: host, address: madeUp(s.next), busy: make(chan struct{}, 1)}
	s.names[host], s.stands[n.address] = n, n
	return n, nil
}

// madeUp is an address of 198.18.0.0/15, which no host has (RFC 2544).
func madeUp(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)})
}

// addresses decides on a name and finds its addresses, at most one of those who
// ask for it at a time: a person is asked once.
func (s *Server) addresses(ctx context.Context, n *name, port uint16) ([]netip.Addr, error) {
	select {
	case n.busy <- struct{}{}:
		defer func() { <-n.busy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := s.allowed(ctx, n.host, port); err != nil {
		return nil, err
	}
	if n.found != nil && time.Since(n.since) < freshFor {
		return n.found, nil
	}
	all, err := s.lookup(ctx, n.host)
	if err != nil {
		return nil, &lookupError{err}
	}
	if len(all) == 0 {
		return nil, &lookupError{errors.New("no addresses")}
	}
	found, err := s.public(n.host, all)
	if len(found) > 0 {
		n.found, n.since = found, time.Now()
		err = nil
	}
	return found, err
}

// public returns the addresses that may be contacted of those that a host has, and why
// the last of the others may not.
func (s *Server) public(host string, all []netip.Addr) (found []netip.Addr, refused error) {
	for _, a := range all {
		if s.unfit(a) == nil {
			found = append(found, a.Unmap())
		}
	}
	for _, a := range all {
		if err := s.unfit(a); err != nil {
			refused = fmt.Errorf("%s has the address %s: %w", host, a, err)
			s.remember(Refusal{Host: host, Address: a, Others: len(found) > 0, Why: refused})
		}
	}
	return found, refused
}

// lookup finds the addresses of a name; few at a time, since each takes descriptors.
func (s *Server) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
		return s.opt.Lookup(ctx, host)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lookupError is a name that is allowed and cannot be found.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return e.err.Error() }

// lookup asks this machine for a name as it stands: no search domain makes it
// another. A name of loopback is not looked up: whoever answers must not choose.
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if loopback.Is(host) {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	if !strings.HasSuffix(host, ".") {
		host += "."
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, "tcp", to.String())
}

func portOf(a net.Addr) uint16 {
	if to, err := netip.ParseAddrPort(a.String()); err == nil {
		return to.Port()
	}
	return 0
}
