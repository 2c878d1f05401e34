package policy

// Confinement describes the sandbox of a call. The zero value confines nothing.
type Confinement struct {
	// View: the call can change only what the sandbox lets it write.
	View bool
	// Judged: the call reaches no sockets of other programs. Beyond its own loopback interface it reaches at most
	// hosts that are decided on by name when they are contacted.
	Judged bool
	// Offline: the call reaches no hosts. Servers at loopback addresses are its own.
	Offline bool
	// Masked: the path rules apply to every program of the call.
	Masked bool
}

func (c Confinement) bounds() bool { return c.View && c.Judged && c.Masked }

// Within returns the policy for calls in a sandbox, which has no influence unless View, Judged and Masked are set.
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

// raised applies defaults.confined to an effect in a sandbox, unless a rule decided.
func (p *Policy) raised(v verdict) verdict {
	if v.rule != nil || !p.confinement.bounds() || p.defaults.Confined <= v.action {
		return v
	}
	return verdict{action: p.defaults.Confined, id: confinedDefault}
}

// excuses reports whether a rule does not apply in a sandbox, which protects the machine and masks files: a built-in
// denial that matches only unknown words or a suspected write, an ask rule for files of which only the end of the name
// is known, or all but a file's deny rules for texts that a program may run.
func (p *Policy) excuses(m match, e Effect) bool {
	switch {
	case !p.confinement.bounds() || p.defaults.Confined != Allow:
		return false
	case e.Kind == Exec && e.Code:
		return m.file == "" || m.Action != Deny
	case m.file != "" || m.Action != Deny:
		return e.Kind == Write && m.Action == Ask && !m.whole
	case e.Kind == Exec:
		return m.result == Ask
	}
	return e.Kind == Write && (e.Possible || !m.whole)
}
