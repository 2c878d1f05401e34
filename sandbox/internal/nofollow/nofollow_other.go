//go:build !linux

package nofollow

import (
	"errors"
	"os"
)

// Lstat fails.
func Lstat(string) (Info, error) { return Info{}, errors.ErrUnsupported }

// OpenFile fails.
func OpenFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }
