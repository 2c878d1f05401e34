//go:build !linux

package sandbox

import (
	"fmt"
	"os"
)

// openFile opens a regular file for reading by its canonical path, with the rights
// of the daemon. It follows no symbolic link.
func openFile(canonical string) (*os.File, error) { return openPortable(canonical) }

// replaceFile gives a file new content at once, with the rights of the daemon. It
// follows no symbolic link. The file must still be r.Old, and writable. Of what is
// not content only its mode is kept.
func replaceFile(canonical string, r Replacement) error { return replacePortable(canonical, r) }

// openDir opens a directory by its canonical path, with the rights of the daemon. It
// follows no symbolic link.
func openDir(canonical string) (*os.File, error) {
	dir, err := folderStepwise(canonical, false)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", canonical, plainCause(err))
	}
	defer dir.Close()
	return dir.Open(".")
}
