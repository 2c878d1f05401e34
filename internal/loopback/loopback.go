// Package loopback listens at and dials names of this machine. It never resolves "localhost" and the
// names below it (RFC 6761, 6.3), which the resolvers of Go and libc may ask a name server about.
package loopback

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
)

// Is reports whether host is "localhost" or a name below it, in any case.
func Is(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// addresses replaces a name that Is by the loopback addresses of IPv4 and IPv6.
func addresses(address string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || !Is(host) {
		return []string{address}
	}
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
}

// Listen is net.Listen. It uses IPv6 only where there is no IPv4.
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
