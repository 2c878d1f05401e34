//go:build !linux

package journal

// Without these values, a reused pid looks like the old process.
func bootID() string { return "" }

func startTime() uint64 { return 0 }
