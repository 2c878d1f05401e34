package sandbox

// Capabilities is what this machine offers for confinement, as Probe found it.
type Capabilities struct {
	Features []Feature
}

// Feature is one layer of the sandbox.
type Feature struct {
	Name   string // e.g. "user namespaces"
	OK     bool
	Detail string // e.g. "version 7"; may be empty
	Why    string // why it does not work
	Mend   string // what to do about it, usually a command
}

// Tier is the level of confinement that the profiles get: "A" with every layer,
// else "none", and then only danger-full-access runs anything.
func (c Capabilities) Tier() string {
	for _, f := range c.Features {
		if !f.OK {
			return "none"
		}
	}
	if len(c.Features) == 0 {
		return "none"
	}
	return "A"
}
