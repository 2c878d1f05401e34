package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

var errName = errors.New("it is no host name")

// ParseName parses a host name into lower case: labels of letters, digits, hyphens and underscores (RFC 1035, RFC
// 5890). It rejects what looks like an address, or ends in a dot.
func ParseName(s string) (string, error) {
	if s == "" || len(s) > 253 {
		return "", errName
	}
	label := ""
	for label = range strings.SplitSeq(s, ".") {
		if !isLabel(label) {
			return "", errName
		}
	}
	// Resolvers parse 127.1, 0x7f.1 and 2130706433 as addresses.
	if _, err := strconv.ParseUint(label, 0, 64); err == nil || label[0] >= '0' && label[0] <= '9' {
		return "", errName
	}
	return strings.ToLower(s), nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func isLabel(s string) bool {
	if s == "" || len(s) > 63 || strings.Trim(s, "-") != s {
		return false
	}
	return strings.Trim(s, letters+"0123456789-_") == ""
}

// Pattern is an entry in a list of hosts.
type Pattern struct {
	host string // without the "*." of "*.host"
	any  bool   // every name below host, but not host itself
	port uint16 // 0 = any
}

// ParsePattern parses "host", "*.host" or "address", each with optional ":port".
func ParsePattern(text string) (Pattern, error) {
	var p Pattern
	host := text
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		if _, err := netip.ParseAddr(text); err != nil {
			port, err := strconv.ParseUint(text[i+1:], 10, 16)
			if err != nil || port == 0 {
				return p, fmt.Errorf("%q is no port", text[i+1:])
			}
			host, p.port = strings.Trim(text[:i], "[]"), uint16(port)
		}
	}
	if a, err := netip.ParseAddr(host); err == nil {
		p.host = a.Unmap().String()
		return p, nil
	}
	host, p.any = strings.CutPrefix(host, "*.")
	var err error
	p.host, err = ParseName(host)
	if err != nil {
		return p, fmt.Errorf("%q: %w", host, err)
	}
	return p, nil
}

// Single returns host and port (0 = any) if the pattern matches only one host.
func (p Pattern) Single() (host string, port uint16, one bool) {
	return p.host, p.port, !p.any && p.host != ""
}

// String returns the form that ParsePattern parses.
func (p Pattern) String() string {
	host := p.host
	if p.any {
		host = "*." + host
	}
	if p.port == 0 {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(int(p.port)))
}

// Matches reports whether the pattern matches a host, as passed to Options.Allow, at a port.
func (p Pattern) Matches(host string, port uint16) bool {
	if p.port != 0 && p.port != port {
		return false
	}
	if p.any {
		return strings.HasSuffix(host, "."+p.host)
	}
	return host == p.host
}
