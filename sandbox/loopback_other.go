//go:build !linux

package sandbox

// Loopback is empty: calls have their own network only on Linux.
type Loopback struct{}
