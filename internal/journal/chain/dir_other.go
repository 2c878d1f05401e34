//go:build !linux

package chain

import "os"

// lockFile does nothing: these systems lack locks of open files, and only one process may use a
// state directory.
func lockFile(*os.File, bool) (bool, error) { return true, nil }

func syncData(f *os.File) error { return f.Sync() }
