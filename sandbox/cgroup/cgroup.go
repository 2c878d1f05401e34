// Package cgroup gives each call a control group (cgroups(7)), which bounds what its processes
// use together, for any user (RLIMIT_NPROC does not apply to root), and knows every one, even a
// hidden one, so that none is left.
//
// A daemon makes groups only below its own: in version 2, if delegated, and in the version 1
// hierarchy that counts processes. Memory is bounded in version 2 only: version
// 1's controller is deprecated.
package cgroup

// Limits bound all processes of a group together. Zero means unlimited.
type Limits struct {
	Processes   uint64 // with threads
	MemoryBytes uint64 // with page cache; used if Root.Memory
}

// Met reports which limits a group has met.
type Met struct {
	Processes bool // a process could not be started
	Memory    bool // the group was killed for it
}
