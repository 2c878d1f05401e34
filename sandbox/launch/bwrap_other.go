//go:build !linux

package launch

import "github.com/toold/toold/sandbox"

// trustBwrap fails: other systems have no bwrap.
func trustBwrap(sandbox.Profile) error { return errPlatform }
