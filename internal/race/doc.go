// Package race has the constant Enabled: whether the program is built with the race detector. It
// is for tests that skip themselves then, since they start programs built without it.
package race
