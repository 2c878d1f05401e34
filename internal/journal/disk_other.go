//go:build !linux

package journal

import "os"

// syncData brings the content of a file to the disk.
func syncData(f *os.File) error { return f.Sync() }
