package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// accept joins the connections of a listener to their hosts until ctx ends, and waits for them.
func (s *Server) accept(ctx context.Context, l net.Listener) {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
		case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
			return
		default:
			select { // no descriptor is left, or the client has disconnected
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		if !s.opt.Slots.take(ctx, s) {
			s.note(c.LocalAddr())
			reset(c)
			c.Close()
			return
		}
		// Ends with the connection or ctx.
		open.Go(func() {
			defer s.opt.Slots.leave(s)
			defer c.Close()
			s.join(ctx, c)
		})
	}
}

// wake ends Accept. A listener that has no deadlines is closed.
func wake(l net.Listener) {
	if d, ok := l.(interface{ SetDeadline(time.Time) error }); !ok || d.SetDeadline(time.Unix(1, 0)) != nil {
		l.Close()
	}
}

// noteLate records connections that a call began just before it ended.
func (s *Server) noteLate(l net.Listener) {
	for range maxRefusals {
		local, ok := late(l)
		if !ok {
			return
		}
		s.note(local)
	}
}

// note records a connection of an ended call that would have been refused without approval.
func (s *Server) note(local net.Addr) {
	at, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return
	}
	at = netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	s.mu.Lock()
	known := s.byAddr[at.Addr()] != nil
	s.mu.Unlock()
	if !known {
		_ = s.checkAddress(at)
	}
}

func (s *Server) join(ctx context.Context, c net.Conn) {
	out, to, err := s.connect(ctx, c.LocalAddr())
	if err != nil {
		reset(c)
		return
	}
	defer out.Close()
	ctx, end := context.WithCancel(ctx)
	defer s.endWhenRevoked(ctx, end, c, to)()
	stop := context.AfterFunc(ctx, func() { c.Close(); out.Close() })
	defer stop()
	var other sync.WaitGroup
	// Ends when one direction ends, or both are closed.
	other.Go(func() {
		if err := s.forwardFirst(out, c, to); err != nil {
			reset(c)
			c.Close()
			out.Close()
			return
		}
		forward(out, c)
	})
	forward(c, out)
	other.Wait()
}

// endWhenRevoked resets a connection when its host must no longer be contacted. stop ends that and waits.
func (s *Server) endWhenRevoked(ctx context.Context, end context.CancelFunc, c net.Conn, to target) (stop func()) {
	if s.opt.Revoked == nil {
		return end
	}
	var watching sync.WaitGroup
	// Ends with ctx.
	watching.Go(func() {
		if err := s.opt.Revoked(ctx, to.host(), to.port); err != nil {
			_ = s.refuse(to.host(), to.port, err)
			reset(c)
			end()
		}
	})
	return func() { end(); watching.Wait() }
}

// forwardFirst forwards the first bytes, unless they are TLS for another name.
func (s *Server) forwardFirst(out io.Writer, c io.Reader, to target) error {
	if s.opt.OtherNames || to.name == "" {
		return nil
	}
	first, inside, err := readFirst(c)
	if err == nil && inside != "" && inside != to.name {
		err = fmt.Errorf("the TLS in it is for %s", inside)
	}
	if errors.Is(err, errEnded) {
		return err
	}
	if err != nil {
		return s.refuse(to.name, to.port, fmt.Errorf("%w; sandbox.egress.sni_check: false would let it", err))
	}
	_, err = out.Write(first)
	return err
}

// forward copies until from ends, and then ends that direction of to. On an error it closes both.
func forward(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		err = half.CloseWrite()
	}
	if err != nil {
		to.Close()
		from.Close()
	}
}

// reset makes closing a connection send a reset instead of an orderly end.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

type target struct {
	name  string // "" = an address was used directly
	port  uint16
	found []netip.Addr
}

func (t target) host() string {
	if t.name == "" && len(t.found) > 0 {
		return t.found[0].String()
	}
	return t.name
}

// connect connects to the host that a connection of the call was meant for, by the address at which it arrived.
func (s *Server) connect(ctx context.Context, local net.Addr) (net.Conn, target, error) {
	at, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return nil, target{}, err
	}
	to, err := s.targetOf(ctx, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
	if err != nil {
		return nil, to, err
	}
	for _, a := range to.found {
		var out net.Conn
		if out, err = s.opt.Dial(ctx, netip.AddrPortFrom(a, to.port)); err == nil {
			return out, to, nil
		}
	}
	return nil, to, err
}

// targetOf returns the host for which a made-up address stands, or the address itself, if the call may contact it.
func (s *Server) targetOf(ctx context.Context, at netip.AddrPort) (target, error) {
	to := target{port: at.Port()}
	s.mu.Lock()
	n := s.byAddr[at.Addr()]
	s.mu.Unlock()
	var err error
	if n != nil {
		to.name = n.host
		to.found, err = s.addresses(ctx, n, to.port)
		return to, err
	}
	host := at.Addr().String()
	if err := s.checkAddress(at); err != nil {
		return to, err
	}
	to.found = []netip.Addr{at.Addr()}
	return to, s.checkAllowed(ctx, host, to.port)
}

// checkAddress refuses an address that was used directly and is not public.
func (s *Server) checkAddress(at netip.AddrPort) error {
	err := s.unfit(at.Addr())
	if err == nil {
		return nil
	}
	return s.refuse(at.Addr().String(), at.Port(), fmt.Errorf("%s: %w", at.Addr(), err))
}
