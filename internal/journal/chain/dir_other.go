//go:build !linux

package chain

import "os"

// lockFile does nothing: other systems have no lock that belongs to an open file, and
// there only one process may use a state directory.
func lockFile(*os.File, bool) (bool, error) { return true, nil }

func sameFile(path string, as os.FileInfo) (size int64, same bool, err error) {
	now, err := os.Stat(path)
	if err != nil {
		return 0, false, err
	}
	return now.Size(), os.SameFile(now, as), nil
}

func syncData(f *os.File) error { return f.Sync() }
