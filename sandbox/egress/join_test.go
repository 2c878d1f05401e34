package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/internal/must"
)

// doors is a Server with one listener, whose address stands for pkg.example.
func doors(t *testing.T, o Options) (*Server, net.Listener, net.PacketConn) {
	t.Helper()
	l := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	dns := must.Get(net.ListenPacket("udp4", "127.0.0.1:0"))(t)
	if o.Allow == nil {
		o.Allow = func(context.Context, string, []uint16) error { return nil }
	}
	s := New(o)
	n := must.Get(s.recordOf("pkg.example"))(t)
	s.byAddr[netip.MustParseAddr("127.0.0.1")] = n
	return s, l, dns
}

// held is an Options.Dial whose connections are held by a server that answers
// nothing; most is how many there were at a time.
type held struct {
	mu         sync.Mutex
	open, most int
	once       sync.Once
	full       chan struct{} // closed when there are as many as are waited for
	want       int
}

func (h *held) dial(context.Context, netip.AddrPort) (net.Conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open++
	h.most = max(h.most, h.open)
	if h.open == h.want {
		h.once.Do(func() { close(h.full) })
	}
	near, far := net.Pipe()
	return &heldConn{near, far, h}, nil
}

type heldConn struct {
	net.Conn
	far net.Conn
	h   *held
}

func (c *heldConn) Close() error {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	if c.far != nil {
		c.h.open--
		c.far.Close()
		c.far = nil
	}
	return c.Conn.Close()
}

// One call that wants all connections leaves some to each other.
func TestPlacesAreSharedFairly(t *testing.T) {
	t.Parallel()
	const places, tried, most = 8, 40, 2
	h := &held{full: make(chan struct{}), want: most}
	s, l, dns := doors(t, Options{Lookup: publicly, Dial: h.dial, Slots: NewSlots(places)})
	other := &held{full: make(chan struct{}), want: 1}
	s2, l2, dns2 := doors(t, Options{Lookup: publicly, Dial: other.dial, Slots: s.opt.Slots})
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	// Ends with stop.
	serving.Go(func() { s.Serve(ctx, dns, []net.Listener{l}) })
	// Ends with stop.
	serving.Go(func() { s2.Serve(ctx, dns2, []net.Listener{l2}) })
	for range tried {
		c := must.Get(net.Dial("tcp4", l.Addr().String()))(t)
		defer c.Close()
	}
	<-h.full
	c := must.Get(net.Dial("tcp4", l2.Addr().String()))(t)
	defer c.Close()
	<-other.full // though the first call wants more than all
	stop()
	serving.Wait()
	if h.most != most || h.open != 0 {
		t.Errorf("%d connections at a time, want %d; %d are left", h.most, most, h.open)
	}
	if p := s.opt.Slots; p.free != places || s.held != 0 || s2.held != 0 {
		t.Errorf("%d places are free when nothing runs; %d and %d are held", p.free, s.held, s2.held)
	}
}

// Calls that contact nobody must not take places from those that do.
func TestAListenerThatWaitsTakesNoPlace(t *testing.T) {
	t.Parallel()
	places := NewSlots(1)
	h := &held{full: make(chan struct{}), want: 1}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	for range 3 {
		s, l, dns := doors(t, Options{Lookup: publicly, Dial: h.dial, Slots: places})
		// Ends with stop.
		serving.Go(func() { s.Serve(ctx, dns, []net.Listener{l}) })
	}
	s, l, dns := doors(t, Options{Lookup: publicly, Dial: h.dial, Slots: places})
	// Ends with stop.
	serving.Go(func() { s.Serve(ctx, dns, []net.Listener{l}) })
	c := must.Get(net.Dial("tcp4", l.Addr().String()))(t)
	defer c.Close()
	<-h.full
	stop()
	serving.Wait()
}

// A program may end in the moment in which it has connected.
func TestAConnectionAtTheLastMomentIsToldOf(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("calls are served on Linux only")
	}
	s, l, dns := doors(t, Options{})
	delete(s.byAddr, netip.MustParseAddr("127.0.0.1"))
	c := must.Get(net.Dial("tcp4", l.Addr().String()))(t)
	defer c.Close()
	ended, stop := context.WithCancel(t.Context())
	stop()
	s.Serve(ended, dns, []net.Listener{l})
	got := s.Refusals()
	if len(got) != 1 || got[0].Host != "127.0.0.1" || got[0].Port != portOf(l.Addr()) {
		t.Errorf("the refusals are %+v", got)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("the connection ends with %v", err)
	}
}

// A name that leads elsewhere with each question leads to what was checked, and what
// is found later is checked like what was found first.
func TestANameThatTurnsPrivateIsRefused(t *testing.T) {
	t.Parallel()
	turns := []string{"93.184.216.34", "127.0.0.1"}
	s := New(Options{
		Allow: func(context.Context, string, []uint16) error { return nil },
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			a := netip.MustParseAddr(turns[0])
			turns = turns[1:]
			return []netip.Addr{a}, nil
		},
	})
	n := must.Get(s.recordOf("turns.example"))(t)
	for range 2 {
		if got, err := s.addresses(t.Context(), n, 80); err != nil || len(got) != 1 || got[0].String() != "93.184.216.34" {
			t.Fatalf("got %v, %v", got, err)
		}
	}
	n.since = n.since.Add(-freshFor)
	if got, err := s.addresses(t.Context(), n, 80); err == nil || !strings.Contains(err.Error(), "no public address") {
		t.Errorf("later it leads to %v, %v", got, err)
	}
}

func TestWhatStandsForANameInOneCallIsNothingToAnother(t *testing.T) {
	t.Parallel()
	o := Options{Allow: func(context.Context, string, []uint16) error { return nil }, Lookup: publicly}
	one, other := New(o), New(o)
	n := must.Get(one.recordOf("pkg.example"))(t)
	at := netip.AddrPortFrom(n.address, 80)
	if to, err := one.targetOf(t.Context(), at); err != nil || to.name != "pkg.example" {
		t.Fatalf("in its own call it is %+v, %v", to, err)
	}
	if to, err := other.targetOf(t.Context(), at); err == nil {
		t.Errorf("in another call it leads to %+v", to)
	}
}

// telling is a listener that tells when it has given a connection.
type telling struct {
	net.Listener
	given chan struct{}
}

func (l telling) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		close(l.given)
	}
	return c, err
}

func TestAConnectionThatWaitsWhenTheCallEndsIsToldOf(t *testing.T) {
	t.Parallel()
	o := Options{Slots: NewSlots(0)} // all are taken by other calls
	s, l, dns := doors(t, o)
	clear(s.byAddr) // so that the address is this machine's
	given := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	// Ends with ctx.
	all.Go(func() { s.Serve(ctx, dns, []net.Listener{telling{l, given}}) })
	c := must.Get(net.Dial("tcp4", l.Addr().String()))(t)
	defer c.Close()
	<-given
	cancel()
	all.Wait()
	if got := s.Refusals(); len(got) != 1 || got[0].Host != "127.0.0.1" {
		t.Errorf("told of %v", got)
	}
}

// A call that has as many connections as it may have leaves one for every other.
func TestEveryCallGetsAPlace(t *testing.T) {
	t.Parallel()
	const n = 85
	p := NewSlots(n)
	for call := range 40 {
		s := New(Options{Slots: p})
		for got := 0; ; got++ {
			if _, ok := p.try(s); !ok {
				if got == 0 {
					t.Fatalf("call %d gets no place; %d are free", call, p.free)
				}
				break
			}
		}
	}
}

func TestAConnectionEndsWhenItsHostIsRevoked(t *testing.T) {
	t.Parallel()
	revoke := make(chan error)
	h := &held{full: make(chan struct{}), want: 1}
	s, l, dns := doors(t, Options{Lookup: publicly, Dial: h.dial, Revoked: func(ctx context.Context, host string, port uint16) error {
		select {
		case err := <-revoke:
			return fmt.Errorf("%s: %w", host, err)
		case <-ctx.Done():
			return nil
		}
	}})
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	// Ends with stop.
	serving.Go(func() { s.Serve(ctx, dns, []net.Listener{l}) })
	kept, ended := dialTo(t, l), make(chan error)
	// Ends with the connection.
	go func() {
		_, err := kept.Read(make([]byte, 1))
		ended <- err
	}()
	<-h.full
	revoke <- errors.New("denied from now on")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("the connection ends with %v", err)
	}
	stop()
	serving.Wait()
	if got := s.Refusals(); len(got) != 1 || got[0].Host != "pkg.example" || !strings.Contains(got[0].Why.Error(), "from now on") {
		t.Errorf("the refusals are %+v", got)
	}
}

func dialTo(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c := must.Get(net.Dial("tcp4", l.Addr().String()))(t)
	t.Cleanup(func() { c.Close() })
	return c
}
