//go:build !linux

package sandbox

import "context"

// Try tells what calls under a profile will be held by. On this platform nothing
// can be confined.
func Try(context.Context, Profile) (Report, error) {
	return Report{}, Unsupported()
}
