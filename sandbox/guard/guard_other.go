//go:build !linux

package guard

// A Guard guards nothing here, where no calls run.
type Guard struct{ options Options }

// New returns a Guard that guards nothing.
func New(o Options) (*Guard, error) { return &Guard{o}, nil }

// Close does nothing.
func (g *Guard) Close() {}

// Follow does nothing.
func (g *Guard) Follow(func([]string)) {}

// Name is the protected name that a canonical path is or lies in.
func (g *Guard) Name(path string) string {
	if g == nil {
		return ""
	}
	return g.options.name(path)
}

// Blind tells nothing.
func (g *Guard) Blind() (why string, unseen bool) { return "", false }

// Survey counts nothing.
func Survey(Options) (folders int, why string, unseen bool) { return 0, "", false }

// A Call is the time in which a call may run.
type Call struct{}

// Begin does nothing.
func (g *Guard) Begin([]string) *Call { return &Call{} }

// Existing is empty.
func (c *Call) Existing() []string { return nil }

// End finds nothing.
func (c *Call) End() []Incident { return nil }
