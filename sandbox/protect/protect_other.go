//go:build !linux

package protect

// A Watcher watches nothing here, where no calls run.
type Watcher struct{ options Options }

// New returns a Watcher that watches nothing.
func New(o Options) (*Watcher, error) { return &Watcher{o}, nil }

// Beside returns nil.
func (w *Watcher) Beside(string, Sight) (*Watcher, error) { return nil, nil }

// Sync shows nothing.
func (w *Watcher) Sync() {}

// Remove removes nothing.
func (w *Watcher) Remove([]Removal) []Incident { return nil }

// List shows nothing.
func (w *Watcher) List() {}

// Close does nothing.
func (w *Watcher) Close() {}

// Follow does nothing.
func (w *Watcher) Follow(func([]string)) {}

// Name is the protected name that a canonical path has or is in.
func (w *Watcher) Name(path string) string {
	if w == nil {
		return ""
	}
	return w.options.name(path)
}

// Blind reports nothing.
func (w *Watcher) Blind() (why string, unseen bool) { return "", false }

// Survey counts nothing.
func Survey(Options) (directories int, why string, unseen bool) { return 0, "", false }

// A Call is the time in which a call may run.
type Call struct{}

// Begin does nothing.
func (w *Watcher) Begin([]string, func()) *Call { return &Call{} }

// Existing is empty.
func (c *Call) Existing() []string { return nil }

// End finds nothing.
func (c *Call) End() []Incident { return nil }
