//go:build !linux

package egress

import "net"

// late returns false, since no calls run on this system.
func late(net.Listener) (net.Addr, bool) { return nil, false }
