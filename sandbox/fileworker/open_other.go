//go:build !linux

package fileworker

import (
	"fmt"
	"os"

	"github.com/toold/toold/internal/paths"
)

// openFile opens a regular file for reading by its canonical path, in the daemon. It follows no symbolic link.
func openFile(canonical string) (*os.File, error) { return openPortable(canonical) }

// replaceFile replaces the content of a file atomically, in the daemon. It follows no symbolic link. The file must
// still be r.Old, and writable. Of its metadata it keeps only the mode.
func replaceFile(canonical string, r Replacement) error { return replacePortable(canonical, r) }

// openDir opens a directory by its canonical path, in the daemon. It follows no symbolic link.
func openDir(canonical string) (*os.File, error) {
	dir, err := dirStepwise(canonical, false)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", canonical, paths.Bare(err))
	}
	defer dir.Close()
	return dir.Open(".")
}
