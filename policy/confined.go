package policy

// Confinement is how a sandbox confines a call. The zero value does not.
type Confinement struct {
	// View means that the call can change only what the sandbox lets it write.
	View bool
	// Offline means that it reaches only its own loopback, and no socket of another program.
	Offline bool
	// Masked means that the path rules apply to every program of the call.
	Masked bool
}

// Within returns the policy for calls with such a confinement. A confinement counts only if all its fields are set.
func (p *Policy) Within(c Confinement) *Policy {
	bounded := c.View && c.Offline && c.Masked
	if p.confined == bounded {
		return p
	}
	next := *p
	next.root, next.confined = p.Root(), bounded
	return &next
}

const confinedDefault = "defaults.confined"

// raised applies defaults.confined to an effect that the sandbox bounds.
func (p *Policy) raised(v verdict) verdict {
	if v.rule != nil || !p.confined || p.defaults.Confined <= v.action {
		return v
	}
	return verdict{action: p.defaults.Confined, id: confinedDefault}
}

// excuses reports whether a rule does not apply in a sandbox: a built-in denial that only unknown words match or of a
// suspected write, and a question about files of which only the end of the name is known. The sandbox protects the
// machine, and the masks protect these files.
func (p *Policy) excuses(m match, e Effect) bool {
	switch {
	case !p.confined || p.defaults.Confined != Allow:
		return false
	case m.file != "" || m.Action != Deny:
		return e.Kind == Write && m.Action == Ask && !m.whole
	case e.Kind == Exec:
		return m.result == Ask
	}
	return e.Kind == Write && (e.Possible || !m.whole)
}
