// Package loopback listens on and dials names of this machine without resolving "localhost" and the names below it,
// which RFC 6761, 6.3 reserves. The resolvers of Go and libc ask a name server for them if /etc/hosts does not
// contain them.
package loopback

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Is reports whether host is "localhost" or a name below it, in any case.
func Is(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// addresses returns the loopback addresses, IPv4 first, for an address whose host Is accepts; otherwise the address.
func addresses(address string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !Is(host) {
		return []string{address}
	}
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
}

// Same reports whether two addresses may belong to the same listener.
func Same(a, b string) bool {
	all := addresses(b)
	return slices.ContainsFunc(addresses(a), func(one string) bool { return slices.Contains(all, one) })
}

// Listen is net.Listen. It uses IPv6 only if there is no IPv4.
func Listen(network, address string) (net.Listener, error) {
	all := addresses(address)
	l, err := net.Listen(network, all[0])
	if errors.Is(err, syscall.EADDRNOTAVAIL) && len(all) > 1 {
		return net.Listen(network, all[1])
	}
	return l, err
}

// Dial is net.Dialer.DialContext.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var all []error
	for _, a := range addresses(address) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, a)
		if err == nil {
			return c, nil
		}
		all = append(all, err)
	}
	return nil, errors.Join(all...)
}

// A Pipe is a listener for connections within this process.
type Pipe struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// NewPipe returns a Pipe. The caller must close it.
func NewPipe() *Pipe {
	return &Pipe{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Dial connects once Accept is called.
func (p *Pipe) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept waits for a connection.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial. It does not close connections.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr returns an address without meaning.
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
