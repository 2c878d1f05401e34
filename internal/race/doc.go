// Package race has the constant Enabled, which says whether the program is built with the race detector. It is for
// tests that skip themselves in that case, since they start programs built without it.
package race
