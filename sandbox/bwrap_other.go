//go:build !linux

package sandbox

// trustBwrap fails: other systems have no bwrap.
func trustBwrap(Profile) error { return errPlatform }
