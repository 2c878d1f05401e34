// Package egress proxies the connections of a confined call, which may reach certain hosts by name.
//
// In the network of the call, every address leads to listeners of the daemon. Each looked-up name gets an address of
// its own; the package joins a connection to that address with one from the daemon to the host. It refuses invalid
// names, and addresses that no public name should have. Options.Allow decides about the rest.
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
	// Allow returns nil if the call may contact host, a lower-case name or an address, at one of the ports, and
	// otherwise why not. It may wait for approval, returns when ctx ends, and is called concurrently.
	Allow func(ctx context.Context, host string, ports []uint16) error

	// Private are non-public networks that may be reached.
	Private []netip.Prefix

	// OtherNames allows a TLS server name other than the looked-up name.
	OtherNames bool

	// Revoked blocks until host must no longer be contacted at port, and returns the reason; the connection is then
	// reset. It returns nil when ctx ends. It is called concurrently. nil = never.
	Revoked func(ctx context.Context, host string, port uint16) error
	// Slots limits the connections of all Servers that share it; nil = only the limit per call.
	Slots *Slots

	// Lookup finds the addresses of a name; nil = the machine's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address; nil = directly from this machine.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Refusal is a host, or one of its addresses, that a call was not allowed to contact.
type Refusal struct {
	Host    string
	Port    uint16     // 0 = the lookup of the name was refused
	Address netip.Addr // the refused address of Host; zero = Host itself
	Others  bool       // other addresses of Host may be contacted
	Why     error
}

const (
	maxNames       = 4096 // per call
	maxQuestions   = 128  // unanswered DNS queries
	maxConnections = 256  // per call at a time; more wait
	maxLookups     = 8    // per call at a time; each takes descriptors of the daemon
	maxRefusals    = 16   // kept for Refusals

	freshFor    = time.Minute // how long the addresses of a name are used
	dialTimeout = 30 * time.Second
)

// Server proxies the connections of one call.
type Server struct {
	opt     Options
	ports   []uint16      // of the listeners
	lookups chan struct{} // one element for each running lookup
	held    int           // slots that its connections have; guarded by Slots.mu

	mu       sync.Mutex // guards the fields below
	names    map[string]*nameRecord
	byAddr   map[netip.Addr]*nameRecord // by made-up address
	next     uint32
	refusals []Refusal
}

// nameRecord is a name that the call looked up.
type nameRecord struct {
	host    string
	address netip.Addr // made up
	busy    chan struct{}

	// Guarded by busy, a lock whose acquisition a context can cancel.
	found []netip.Addr
	since time.Time
}

// New returns a Server for a call.
func New(o Options) *Server {
	if o.Lookup == nil {
		o.Lookup = lookUp
	}
	if o.Dial == nil {
		o.Dial = dial
	}
	if o.Slots == nil {
		o.Slots = NewSlots(4 * maxConnections) // more than this call can use
	}
	return &Server{opt: o, lookups: make(chan struct{}, maxLookups), names: map[string]*nameRecord{}, byAddr: map[netip.Addr]*nameRecord{}}
}

// Serve answers the DNS queries on dns and proxies the connections of the listeners until ctx ends. Then it closes
// them and waits for its goroutines. It must be called once.
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

// Refusals returns the first refusals, without duplicates.
func (s *Server) Refusals() []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Refusal(nil), s.refusals...)
}

// refuse records a refusal for the return of the call, and returns why.
func (s *Server) refuse(host string, port uint16, why error) error {
	s.remember(Refusal{Host: host, Port: port, Why: why})
	return why
}

// remember keeps the first refusals, without duplicates. A refused lookup stands for every port.
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

// checkAllowed calls Options.Allow for a host and records a refusal. Port 0 is a lookup, which is for any port of the
// listeners.
func (s *Server) checkAllowed(ctx context.Context, host string, port uint16) error {
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

// recordOf returns the record of a name, and makes one for a new name unless there are maxNames.
func (s *Server) recordOf(host string) (*nameRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.names[host]; n != nil {
		return n, nil
	}
	if len(s.names) == maxNames {
		return nil, errTooMany
	}
	s.next++
	n := &nameRecord{host: host, address: madeUp(s.next), busy: make(chan struct{}, 1)}
	s.names[host], s.byAddr[n.address] = n, n
	return n, nil
}

// madeUp returns the nth address of 198.18.0.0/15, which no host has: it is reserved for benchmarks (RFC 2544). n
// must be below 1<<17.
func madeUp(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)})
}

// addresses returns the addresses of an allowed name that may be contacted. It looks them up again if they are stale.
// Calls for one name run one after another, so that Allow can reuse an answer. A failed lookup is a *lookupError.
func (s *Server) addresses(ctx context.Context, n *nameRecord, port uint16) ([]netip.Addr, error) {
	select {
	case n.busy <- struct{}{}:
		defer func() { <-n.busy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := s.checkAllowed(ctx, n.host, port); err != nil {
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
	found, err := s.contactable(n.host, all)
	if len(found) > 0 {
		n.found, n.since = found, time.Now()
		err = nil
	}
	return found, err
}

// contactable returns the addresses of a host that may be contacted, and why the last of the others may not.
func (s *Server) contactable(host string, all []netip.Addr) (found []netip.Addr, refused error) {
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

// lookup runs Options.Lookup while at most maxLookups run.
func (s *Server) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
		return s.opt.Lookup(ctx, host)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lookupError is answered with NXDOMAIN, other errors with REFUSED.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return e.err.Error() }

// lookUp uses the machine's resolver without search domains. Loopback names are always 127.0.0.1, whatever the
// resolver returns.
func lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
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
