package config

import (
	"net/netip"
	"strconv"

	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/sandbox/widen"
)

// Egress is what calls may contact where the network is proxy.
type Egress struct {
	Allow   []egress.Pattern // without being asked for
	Private []netip.Prefix   // networks that are not public and may be reached

	// OtherNames lets TLS be for another name than the one that was asked for.
	OtherNames bool
}

func (l *loader) egress(c *Config, raw file) {
	r := raw.Sandbox.Egress
	_, c.Egress.Allow = l.hosts(r.Allow, "sandbox.egress.allow")
	for i, text := range l.texts(r.Private, "sandbox.egress.private") {
		p, err := netip.ParsePrefix(text)
		if a, single := netip.ParseAddr(text); err != nil && single == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil && text != "" {
			l.fail(r.Private[i], "sandbox.egress.private[%d] cannot be %q: expected an address or a network, such as 10.1.2.3 or 10.0.0.0/8", i, text)
		}
		c.Egress.Private = append(c.Egress.Private, p.Masked())
	}
	c.Egress.OtherNames = r.SNI.set && !l.truth(r.SNI, "sandbox.egress.sni_check")
	ports := l.ports(r.Ports)
	c.Widen.Ports = ports
	widens := c.Widen.Network >= widen.Proxy || len(c.Widen.Hosts) > 0
	if raw.Sandbox.Network.text == "proxy" {
		c.Sandbox.Ports = ports
	} else if !widens && (len(r.Allow)+len(r.Private) > 0 || c.Egress.OtherNames) {
		l.warn("sandbox.egress has no effect: sandbox.network is not proxy")
	}
}

func (l *loader) hosts(list []scalar, key string) (texts []string, patterns []egress.Pattern) {
	texts = l.texts(list, key)
	for i, text := range texts {
		p, err := egress.ParsePattern(text)
		if err != nil && text != "" {
			l.fail(list[i], "%s[%d] cannot be %q: %v; expected a host such as proxy.example, *.example.org or pypi.org:443", key, i, text, err)
		}
		patterns = append(patterns, p)
	}
	return texts, patterns
}

func (l *loader) ports(list []scalar) []uint16 {
	if len(list) == 0 {
		return []uint16{80, 443}
	}
	if len(list) > maxPorts {
		l.fail(list[0], "sandbox.egress.ports has %d entries: at most %d", len(list), maxPorts)
	}
	var ports []uint16
	seen := map[string]bool{}
	for i, text := range l.texts(list, "sandbox.egress.ports") {
		n, err := strconv.ParseUint(text, 10, 16)
		if text != "" && (err != nil || n == 0 || strconv.FormatUint(n, 10) != text || seen[text]) {
			l.fail(list[i], "sandbox.egress.ports[%d] cannot be %q: expected a port from 1 to 65535, each once", i, text)
		}
		seen[text] = true
		ports = append(ports, uint16(n))
	}
	return ports
}

// maxPorts bounds the listeners of a call.
const maxPorts = 32
