package policy

import (
	"net/netip"
	"strings"
)

// Confinement is how a sandbox confines the call that is decided. The zero value is an unconfined call.
type Confinement struct {
	// View reports that the call has its own view of the file system, in which it can change only what the sandbox lets it write.
	View bool
	// Offline reports that it reaches no network but its own loopback, and no socket of another program.
	Offline bool
	// Masked reports that the path rules apply to every program of the call.
	Masked bool
}

// Within returns the policy for calls with such a confinement. The defaults for confined calls apply to no others.
func (p *Policy) Within(c Confinement) *Policy {
	bounded := c.View && c.Offline && c.Masked // it can do no harm outside of what it may write
	if p.confined == bounded {
		return p
	}
	next := *p
	next.root, next.confined = p.Root(), bounded
	return &next
}

const confinedDefault = "defaults.confined"

// raised returns the result of a default for an effect that the sandbox bounds: at least defaults.confined.
func (p *Policy) raised(v verdict) verdict {
	if v.rule != nil || !p.confined || p.defaults.Confined <= v.action {
		return v
	}
	return verdict{action: p.defaults.Confined, id: confinedDefault}
}

// excuses reports whether a rule does not apply: a built-in denial of a command that only unknown words match, or of a suspected write,
// and a question about files of which only the end of the name is known. The sandbox protects the machine, and the masks these files.
func (p *Policy) excuses(r *rule, e Effect, action Action, whole bool) bool {
	switch {
	case !p.confined || p.defaults.Confined != Allow:
		return false
	case r.file != "" || r.Action != Deny:
		return e.Kind == Write && r.Action == Ask && !whole
	}
	return e.Kind == Exec && action == Ask || e.Kind == Write && (e.Possible || !whole)
}

// isLoopback reports whether a host is the machine itself: in a sandbox without network, the call alone.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}
