//go:build !linux

package launch

import "github.com/toold/toold/sandbox"

// trustBwrap returns an error, since other systems have no bwrap.
func trustBwrap(sandbox.Profile) error { return errPlatform }
