//go:build !linux

package nofollow

import (
	"errors"
	"os"
	"time"
)

// Lstat fails.
func Lstat(string) (Info, error) { return Info{}, errors.ErrUnsupported }

// Stamp returns the current time.
func Stamp() time.Time { return time.Now() }

// OpenUpTo fails.
func OpenUpTo(_, _ string, _ time.Time) error { return errors.ErrUnsupported }

// OpenFile fails.
func OpenFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }
