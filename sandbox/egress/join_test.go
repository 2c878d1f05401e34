package egress

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// doors is a Server with one listener, whose address stands for pkg.example.
func doors(t *testing.T, o Options) (*Server, net.Listener, net.PacketConn) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dns, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if o.Allow == nil {
		o.Allow = func(context.Context, string, []uint16) error { return nil }
	}
	s := New(o)
	n, err := s.named("pkg.example")
	if err != nil {
		t.Fatal(err)
	}
	s.stands[netip.MustParseAddr("127.0.0.1")] = n
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

func TestAsManyConnectionsAsThereArePlaces(t *testing.T) {
	t.Parallel()
	const places, tried = 8, 40
	h := &held{full: make(chan struct{}), want: places}
	s, l, dns := doors(t, Options{Lookup: publicly, Dial: h.dial, Places: make(chan struct{}, places)})
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	// Ends with stop.
	serving.Go(func() { s.Serve(ctx, dns, []net.Listener{l}) })
	for range tried {
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	<-h.full
	stop()
	serving.Wait()
	if h.most != places || h.open != 0 {
		t.Errorf("%d connections at a time, want %d; %d are left", h.most, places, h.open)
	}
	if n := len(s.opt.Places); n != 0 {
		t.Errorf("%d places are taken when nothing runs", n)
	}
}

// Calls that contact nobody must not take places from those that do.
func TestAListenerThatWaitsTakesNoPlace(t *testing.T) {
	t.Parallel()
	places := make(chan struct{}, 1)
	h := &held{full: make(chan struct{}), want: 1}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	for range 3 {
		s, l, dns := doors(t, Options{Lookup: publicly, Dial: h.dial, Places: places})
		// Ends with stop.
		serving.Go(func() { s.Serve(ctx, dns, []net.Listener{l}) })
	}
	s, l, dns := doors(t, Options{Lookup: publicly, Dial: h.dial, Places: places})
	// Ends with stop.
	serving.Go(func() { s.Serve(ctx, dns, []net.Listener{l}) })
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
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
	delete(s.stands, netip.MustParseAddr("127.0.0.1"))
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
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
	n, err := s.named("turns.example")
	if err != nil {
		t.Fatal(err)
	}
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
	n, err := one.named("pkg.example")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(n.address, 80)
	if to, err := one.meant(t.Context(), at); err != nil || to.name != "pkg.example" {
		t.Fatalf("in its own call it is %+v, %v", to, err)
	}
	if to, err := other.meant(t.Context(), at); err == nil {
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
	o := Options{Places: make(chan struct{}, 1)}
	o.Places <- struct{}{} // taken by another call
	s, l, dns := doors(t, o)
	clear(s.stands) // so that the address is this machine's
	given := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	// Ends with ctx.
	all.Go(func() { s.Serve(ctx, dns, []net.Listener{telling{l, given}}) })
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-given
	cancel()
	all.Wait()
	if got := s.Refusals(); len(got) != 1 || got[0].Host != "127.0.0.1" {
		t.Errorf("told of %v", got)
	}
}
