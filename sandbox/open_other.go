//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"syscall"
)

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// OpenFile refuses: errors.Is finds ErrUnavailable. Only Linux can open a path
// without following a link anywhere in it (openat2(2)).
func OpenFile(string) (*os.File, error) { return nil, Unsupported() }

// ReplaceFile refuses: errors.Is finds ErrUnavailable.
func ReplaceFile(string, Replacement) error { return Unsupported() }
