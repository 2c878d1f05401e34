//go:build !linux

package nofollow

import (
	"errors"
	"os"
)

// Lstat knows of no file.
func Lstat(string) (Info, error) { return Info{}, errors.ErrUnsupported }

// OpenFile opens nothing.
func OpenFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }
