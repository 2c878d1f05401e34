//go:build !linux

package journal

// bootID and startTime are unknown here: a reused pid is taken for the old process.
func bootID() string { return "" }

func startTime() uint64 { return 0 }
