//go:build !linux

package sandbox

import (
	"context"
	"os"
)

// workers are none: nothing can be confined here.
type workers struct{}

func (*workers) open(context.Context, Profile, string) (*os.File, Report, error) {
	return nil, Report{}, Unsupported()
}

func (*workers) replace(context.Context, Profile, string, Replacement) error {
	return Unsupported()
}

func (*workers) close() {}
