//go:build !race

package race

// Enabled reports whether the program is built with the race detector.
const Enabled = false
