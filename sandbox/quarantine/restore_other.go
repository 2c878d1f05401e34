//go:build !linux

package quarantine

import (
	"errors"
	"os"
	"path/filepath"
)

// Restore returns an error, since toold does not quarantine files on this system.
func Restore(_, _ string) (path string, err error) {
	return "", errors.New("this system has no quarantine")
}

func removeItem(quarantine, id string) error { return os.RemoveAll(filepath.Join(quarantine, id)) }
