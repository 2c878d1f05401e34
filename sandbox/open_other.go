//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"syscall"
)

func isNotDir(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// openFile opens a regular file for reading by its canonical path, with the rights
// of the daemon. It follows no symbolic link.
func openFile(canonical string) (*os.File, error) { return openPortable(canonical) }

// replaceFile gives a file new content at once, with the rights of the daemon. It
// follows no symbolic link. The file must still be r.Old, and writable. Of what is
// not content only its mode is kept.
func replaceFile(canonical string, r Replacement) error { return replacePortable(canonical, r) }
