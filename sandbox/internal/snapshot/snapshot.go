// Package snapshot records the state of the host that a sandbox was made from, and compares it
// later: the identity of directories and files, and the mounts. It does not compare contents.
package snapshot
