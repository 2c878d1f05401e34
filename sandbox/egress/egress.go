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
	// Allow returns nil if host, a lower-case name or an address, may be contacted at any one of
	// the ports, and otherwise why not. It may wait for a person, ends with ctx, and is called
	// concurrently.
	Allow func(ctx context.Context, host string, ports []uint16) error

	// Private are non-public networks that may be reached.
	Private []netip.Prefix

	// OtherNames allows TLS for another name than was looked up.
	OtherNames bool

	// Revoked blocks until host must not be contacted at port any more, and returns the reason;
	// it returns nil when ctx ends. The connection is then reset. It is called concurrently. Nil:
	// nothing is revoked.
	Revoked func(ctx context.Context, host string, port uint16) error
	// Slots bounds the connections of all Servers that share it. Nil = only the bound per call.
	Slots *Slots

	// Lookup finds the addresses of a name; nil = the machine's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address; nil = from this machine.
	Dial func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Refusal is a host, or one address of a host, that a call was not allowed to contact.
type Refusal struct {
	Host    string
	Port    uint16     // 0 = the lookup of its name was refused
	Address netip.Addr // the refused one of Host's addresses; zero = Host itself
	Others  bool       // other addresses of Host may be contacted
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
	held    int           // connections; guarded by Slots.mu

	mu       sync.Mutex // guards what follows
	names    map[string]*nameRecord
	byAddr   map[netip.Addr]*nameRecord // by made-up address
	next     uint32
	refusals []Refusal
}

// nameRecord is what is known of a name.
type nameRecord struct {
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
		o.Lookup = lookUp
	}
	if o.Dial == nil {
		o.Dial = dial
	}
	if o.Slots == nil {
		o.Slots = NewSlots(4 * maxConnections) // more than this call can have
	}
	return &Server{opt: o, lookups: make(chan struct{}, maxLookups), names: map[string]*nameRecord{}, byAddr: map[netip.Addr]*nameRecord{}}
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

// Refusals returns the first refusals, each once.
func (s *Server) Refusals() []Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Refusal(nil), s.refusals...)
}

func (s *Server) refuse(host string, port uint16, why error) error {
	s.remember(Refusal{Host: host, Port: port, Why: why})
	return why
}

// remember keeps the first refusals, each once. A refused lookup stands for every port.
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

// checkAllowed asks Options.Allow about a host and remembers a refusal. Port 0 is a lookup, which is
// for any port of the listeners.
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

// recordOf returns the one record of a name. Their number is bounded.
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

// madeUp returns the nth address of 198.18.0.0/15, which is reserved for benchmarks (RFC 2544): no
// host has it. n is below 1<<17.
func madeUp(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)})
}

// addresses asks Options.Allow about a name and returns its addresses, which it looks up if they are
// stale. Calls for one name run one after another, so that Allow can remember an answer. A failed
// lookup is a *lookupError.
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

// contactable returns the addresses of a host that may be contacted, and why the last of the others
// may not.
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

func (s *Server) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	select {
	case s.lookups <- struct{}{}:
		defer func() { <-s.lookups }()
		return s.opt.Lookup(ctx, host)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lookupError is answered with NXDOMAIN; other errors are with REFUSED.
type lookupError struct{ err error }

func (e *lookupError) Error() string { return e.err.Error() }

// lookUp asks the machine's resolver, without search domains. Loopback names are always 127.0.0.1,
// whatever the resolver says.
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
