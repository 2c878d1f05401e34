//go:build !linux

package egress

import "net"

// late returns false: no calls run here.
func late(net.Listener) (net.Addr, bool) { return nil, false }
