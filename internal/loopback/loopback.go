// Package loopback listens at and dials names that mean this machine.
//
// RFC 6761, 6.3 sets "localhost" and the names below it apart for loopback, and lets
// no name server say otherwise. The resolvers of Go and libc ask one all the same
// when /etc/hosts has no such name. This package never looks these names up.
package loopback

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
)

// Is reports whether host is "localhost" or a name below it, in any case, with or
// without a final dot.
func Is(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// addresses are what an address host:port stands for: with a name that Is, that of
// loopback in IPv4 and IPv6; else the address itself.
func addresses(address string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !Is(host) {
		return []string{address}
	}
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
}

// Listen is net.Listen. It takes the address of IPv6 only where there is none of IPv4.
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
