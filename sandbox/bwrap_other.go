//go:build !linux

package sandbox

// trustBwrap refuses: there is no bwrap on other systems.
func trustBwrap(Profile) error { return errPlatform }
