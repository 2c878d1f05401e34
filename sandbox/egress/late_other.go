//go:build !linux

package egress

import "net"

// late finds nothing: there are no calls to serve here.
func late(net.Listener) (net.Addr, bool) { return nil, false }
