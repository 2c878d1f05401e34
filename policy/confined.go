package policy

import (
	"net/netip"
	"strings"
)

// Confinement is what a sandbox keeps from the call that is decided. The zero value is a call that nothing confines.
type Confinement struct {
	// View reports that the call has a view of the file system of its own, in which it can change nothing but what the sandbox
	// lets it write.
	View bool
	// Offline reports that it reaches no network but its own loopback, and no socket of another program.
	Offline bool
	// Masked reports that the rules about paths hold for every program of the call.
	Masked bool
}

// Within returns the policy for calls in such a confinement. The defaults that a file gives to confined calls hold in no other.
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

// raised returns what a default comes to for an effect that the sandbox of the call bounds: at least what defaults.confined says.
func (p *Policy) raised(v verdict) verdict {
	if v.rule != nil || !p.confined || p.defaults.Confined <= v.action {
		return v
	}
	return verdict{action: p.defaults.Confined, id: confinedDefault}
}

// excuses reports whether a rule does not count: a built-in denial of a command which only words that are not known make it, or
// of a write which is only suspected, and a question about files of which only the end of the name is known. The sandbox keeps
// the machine from being changed, and the masks these files.
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
