//go:build !linux

package fileworker

import (
	"fmt"
	"os"
)

// openFile opens a regular file for reading by its canonical path, as the daemon. It follows no
// symbolic link.
func openFile(canonical string) (*os.File, error) { return openPortable(canonical) }

// replaceFile replaces a file's content atomically, as the daemon. It follows no symbolic link. The
// file must still be r.Old, and writable. Of its metadata only the mode is kept.
func replaceFile(canonical string, r Replacement) error { return replacePortable(canonical, r) }

// openDir opens a directory by its canonical path, as the daemon. It follows no symbolic link.
func openDir(canonical string) (*os.File, error) {
	dir, err := dirStepwise(canonical, false)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", canonical, plainCause(err))
	}
	defer dir.Close()
	return dir.Open(".")
}
