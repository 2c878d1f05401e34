//go:build !linux

package quarantine

import (
	"errors"
	"os"
	"path/filepath"
)

// Restore fails: nothing is removed here.
func Restore(quarantine, id string) (string, error) {
	return "", errors.New("nothing is removed on this system")
}

func removeCell(quarantine, id string) error { return os.RemoveAll(filepath.Join(quarantine, id)) }
