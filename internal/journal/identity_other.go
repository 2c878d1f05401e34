//go:build !linux

package journal

// bootID and startTime are not known here: a pid in use again is taken for the process
// that had it.
func bootID() string { return "" }

func startTime() uint64 { return 0 }
