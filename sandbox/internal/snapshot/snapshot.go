// Package snapshot records the state of the host from which a sandbox was made, and compares it later: the identities
// of directories and files, and the mounts. It does not compare contents.
package snapshot
