package policy

// Confinement is how a sandbox confines a call. The zero value does not.
type Confinement struct {
	// View means that the call can change only what the sandbox lets it write.
	View bool
	// Judged means that it reaches no socket of another program, and beyond its own loopback only hosts, if any, each of
	// which is judged by name when it is contacted.
	Judged bool
	// Offline means that it reaches no host at all: what it contacts at a loopback address is its own.
	Offline bool
	// Masked means that the path rules apply to every program of the call.
	Masked bool
}

func (c Confinement) bounds() bool { return c.View && c.Judged && c.Masked }

// Within returns the policy for calls with such a confinement. It counts only if View, Judged and Masked are set.
func (p *Policy) Within(c Confinement) *Policy {
	if !c.bounds() {
		c = Confinement{}
	}
	if p.confinement == c {
		return p
	}
	next := *p
	next.root, next.confinement = p.Root(), c
	return &next
}

const confinedDefault = "defaults.confined"

// raised applies defaults.confined to an effect that the sandbox bounds.
func (p *Policy) raised(v verdict) verdict {
	if v.rule != nil || !p.confinement.bounds() || p.defaults.Confined <= v.action {
		return v
	}
	return verdict{action: p.defaults.Confined, id: confinedDefault}
}

// excuses reports whether a rule does not apply in a sandbox: a built-in denial that only unknown words match or of a
// suspected write, and a question about files of which only the end of the name is known. The sandbox protects the
// machine, and the masks protect these files.
func (p *Policy) excuses(m match, e Effect) bool {
	switch {
	case !p.confinement.bounds() || p.defaults.Confined != Allow:
		return false
	case m.file != "" || m.Action != Deny:
		return e.Kind == Write && m.Action == Ask && !m.whole
	case e.Kind == Exec:
		return m.result == Ask
	}
	return e.Kind == Write && (e.Possible || !m.whole)
}
