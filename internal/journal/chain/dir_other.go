//go:build !linux

package chain

import "os"

// lockFile does nothing: other systems have no lock that belongs to an open file, and
// there only one process may use a state directory.
func lockFile(*os.File, bool) (bool, error) { return true, nil }

func syncData(f *os.File) error { return f.Sync() }
