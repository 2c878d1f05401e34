//go:build !linux

package protect

import "context"

// A Watcher does nothing on this system, where no calls run.
type Watcher struct{ options Options }

// New returns a Watcher that does nothing.
func New(o Options) (*Watcher, error) { return &Watcher{o}, nil }

// Beside returns nil.
func (w *Watcher) Beside(string, Observer) (*Watcher, error) { return nil, nil }

// Sync does nothing.
func (w *Watcher) Sync(context.Context) error { return nil }

// Remove does nothing.
func (w *Watcher) Remove([]Removal) []Incident { return nil }

// List does nothing.
func (w *Watcher) List() {}

// Close does nothing.
func (w *Watcher) Close() {}

// Follow does nothing.
func (w *Watcher) Follow(func([]string)) {}

// Name returns the protected name that contains a canonical path.
func (w *Watcher) Name(path string) string {
	if w == nil {
		return ""
	}
	return w.options.name(path)
}

// Unwatched returns "".
func (w *Watcher) Unwatched() (why string, unseen bool) { return "", false }

// Survey returns zeros.
func Survey(Options) (directories int, why string, unseen bool) { return 0, "", false }

// A Call does nothing.
type Call struct{}

// Begin does nothing.
func (w *Watcher) Begin(context.Context, []string, func()) (*Call, error) { return &Call{}, nil }

// Existing returns nil.
func (c *Call) Existing() []string { return nil }

// End returns nil.
func (c *Call) End() []Incident { return nil }
