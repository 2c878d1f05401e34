package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
)

// accept joins the connections of a listener until it is closed. places bounds
// those that are open.
func (s *Server) accept(ctx context.Context, l net.Listener, places chan struct{}) {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		c, err := l.Accept()
		if err != nil {
			<-places
			if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
				return
			}
			continue
		}
		// Ends with the connection or ctx.
		open.Go(func() {
			defer func() { <-places }()
			s.join(ctx, c)
		})
	}
}

// join connects c to the host for which its own address stands. A connection that
// is refused is reset.
func (s *Server) join(ctx context.Context, c net.Conn) {
	defer c.Close()
	out, err := s.connect(ctx, c.LocalAddr())
	if err != nil {
		reset(c)
		return
	}
	defer out.Close()
	stop := context.AfterFunc(ctx, func() { c.Close(); out.Close() })
	defer stop()
	done := make(chan struct{})
	// Ends when one side has no more to say, or both are closed.
	go func() {
		defer close(done)
		pass(out, c)
	}()
	pass(c, out)
	<-done
}

// pass copies one direction and then tells its end. What fails in one direction
// ends both.
func pass(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		to.Close()
		from.Close()
	}
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// connect makes the connection for which an address of the call's network stands.
func (s *Server) connect(ctx context.Context, local net.Addr) (net.Conn, error) {
	to, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return nil, err
	}
	found, err := s.meant(ctx, netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		var out net.Conn
		if out, err = s.opt.Dial(ctx, netip.AddrPortFrom(a, to.Port())); err == nil {
			return out, nil
		}
	}
	return nil, err
}

// meant decides on a connection and tells where it may go.
func (s *Server) meant(ctx context.Context, to netip.AddrPort) ([]netip.Addr, error) {
	s.mu.Lock()
	n := s.stands[to.Addr()]
	s.mu.Unlock()
	if n != nil {
		return s.addresses(ctx, n, to.Port())
	}
	if err := s.unfit(to.Addr()); err != nil {
		return nil, s.refuse(to.Addr().String(), to.Port(), fmt.Errorf("%s: %w", to.Addr(), err))
	}
	if err := s.allowed(ctx, to.Addr().String(), to.Port()); err != nil {
		return nil, err
	}
	return []netip.Addr{to.Addr()}, nil
}
