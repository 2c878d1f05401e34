// Package egress carries the connections of a confined call to the hosts that it may reach, by
// name.
//
// In the call's network every address leads to listeners of the daemon. A looked-up name gets
// an address of its own; a connection there is joined to one that the daemon makes. The
// package refuses invalid names and addresses that no public name should have; all else is up
// to Options.Allow.
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

// Options configure a Server. Allow is required.
type Options struct {
	// Allow decides whether host, a lower-case name or an address, may be contacted at one of
	// the ports; nil allows it. It may wait for a person, ends with ctx, and is
	// called concurrently.
	Allow func(ctx context.Context, host string, ports []uint16) error

	// Private are non-public networks that may be reached.
	Private []netip.Prefix

	// OtherNames allows TLS for another name than was looked up.
	OtherNames bool

	// Revoked waits until host must not be contacted at port any more and returns why, or nil
	// when ctx ends. A connection ends with it. It is called concurrently. Nil = nothing is
	// revoked.
	Revoked func(ctx context.Context, host string, port uint16) error
	// Slots bounds the connections of all Servers that share it. Nil = only the bound per call.
	Slots *Slots

	// Lookup finds the addresses of a name; nil = the machine's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address; nil = from this machine.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Refusal is a host that a call was not allowed to reach.
type Refusal struct {
	Host string
	Port uint16 // 0 = the lookup of its name was refused
	// Address is the refused one of Host's addresses; zero = Host itself. Others: another may
	// be contacted.
	Address netip.Addr
	Others  bool
	Why     error
}

const (
	maxNames       = 4096 // per call
	maxQuestions   = 128  // waiting for an answer at a time
	maxConnections = 256  // per call at a time; more wait
	maxLookups     = 8    // per call at a time; each takes descriptors of the daemon
	maxRefusals    = 16   // kept

	freshFor    = time.Minute // how long addresses of a name are used
	dialTimeout = 30 * time.Second
)

// Server serves one call.
type Server struct {
	opt     Options
	ports   []uint16      // of the listeners
	lookups chan struct{} // one element for each running lookup
	held    int           // guarded by Slots

	mu       sync.Mutex
	names    map[string]*name
	byAddr   map[netip.Addr]*name // by made-up address
	next     uint32
	refusals []Refusal
}

type name struct {
	host    string
	address netip.Addr // made up
	busy    chan struct{}

	// Guarded by busy, a lock that can be waited for with a context.
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
	if o.Slots == nil {
		o.Slots = NewSlots(4 * maxConnections)
	}
	return &Server{opt: o, lookups: make(chan struct{}, maxLookups), names: map[string]*name{}, byAddr: map[netip.Addr]*name{}}
}

// Serve answers the DNS queries on dns and joins the connections of the listeners, until ctx
// ends. It closes them and waits for its goroutines. It must be called once.
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

// Refusals returns the first hosts that the call could not reach, each once.
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
		same := r.Host == refused.Host && r.Address == refused.Address
		if same && (r.Port == refused.Port || r.Port == 0) {
			return
		}
	}
	if len(s.refusals) < maxRefusals {
		s.refusals = append(s.refusals, refused)
	}
}

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

// named returns the one record of a name. Their number is bounded.
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
	s.names[host], s.byAddr[n.address] = n, n
	return n, nil
}

// madeUp returns an address of 198.18.0.0/15, which no host has (RFC 2544).
func madeUp(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)})
}

// addresses decides on a name and finds its addresses, for one caller at a time: a person is
// asked once.
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

// public returns the addresses of a host that may be contacted, and why the last of the others may
// not.
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

func (s *Server) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
		return s.opt.Lookup(ctx, host)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type lookupError struct{ err error }

func (e *lookupError) Error() string { return e.err.Error() }

// lookup asks the machine's resolver, without search domains. Loopback names are not looked up:
// the resolver must not choose.
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
