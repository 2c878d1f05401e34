package egress

import (
	"errors"
	"net"
	"net/netip"
	"slices"
)

// notPublic lists the networks to which no public name should resolve: those of the IANA registries of
// special-purpose addresses, multicast and reserved ones. In IPv6, only 2000::/3 is assigned to hosts, so everything
// else is refused.
func notPublic() []netip.Prefix {
	var list []netip.Prefix
	for _, s := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
		"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"224.0.0.0/3",      // multicast, reserved, broadcast
		"168.63.129.16/32", // the host of an Azure virtual machine

		"::/3", "4000::/2", "8000::/1",
		"2001::/23", // Teredo, ORCHID, benchmarks and others
		"2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3ffe::/16", "3fff::/20",
	} {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}

var errPrivate = errors.New("that is no public address; sandbox.egress.private lists those that may be reached all the same")

// unfit returns why an address must not be contacted. Addresses of this machine count as private even if they are
// public, since the daemon listens there.
func (s *Server) unfit(a netip.Addr) error {
	if !a.IsValid() || a.Zone() != "" {
		return errPrivate
	}
	a = a.Unmap()
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	switch {
	case slices.ContainsFunc(s.opt.Private, contains):
		return nil
	case slices.ContainsFunc(notPublic(), contains), ownAddress(a):
		return errPrivate
	}
	return nil
}

func ownAddress(a netip.Addr) bool {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return true // the addresses are unknown, so none is allowed
	}
	for _, own := range addresses {
		if p, err := netip.ParsePrefix(own.String()); err == nil && p.Addr().Unmap() == a {
			return true
		}
	}
	return false
}
