package sandbox

// Capabilities is what this machine offers for confinement, as found by Probe.
type Capabilities struct {
	Features []Feature
}

// Feature is one layer of the sandbox.
type Feature struct {
	Name   string // e.g. "user namespaces"
	OK     bool
	Detail string // e.g. "version 7"; may be empty
	Why    string // why it does not work
	Fix    string // how to fix it, usually a command
}

// Tier returns "A" if every layer works, else "none": then only danger-full-access runs anything.
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
