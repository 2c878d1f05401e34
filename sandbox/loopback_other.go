//go:build !linux

package sandbox

// Loopback lends nothing: only on Linux calls have a network of their own.
type Loopback struct{}
