//go:build !linux

package quarantine

import (
	"errors"
	"os"
	"path/filepath"
)

// Restore always fails: on this system toold quarantines no files.
func Restore(_, _ string) (path string, err error) {
	return "", errors.New("this system has no quarantine")
}

func removeItem(quarantine, id string) error { return os.RemoveAll(filepath.Join(quarantine, id)) }
