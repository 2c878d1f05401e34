//go:build !linux

package launch

// Loopback is empty: calls have their own network only on Linux.
type Loopback struct{}
