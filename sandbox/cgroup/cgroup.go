// Package cgroup gives each call a control group (cgroups(7)). The group bounds what all processes
// of the call use together, for any user: RLIMIT_NPROC does not apply to root. It also knows every
// process of the call, even a hidden one, so that none is left at its end.
//
// A daemon only makes groups below its own, in version 2, if delegated, and in the version 1
// hierarchy that counts processes. Memory is bounded in version 2 only: version 1's controller is
// deprecated.
package cgroup

// Limits bound all processes of a group together. Zero means unlimited.
type Limits struct {
	Processes   uint64 // including threads
	MemoryBytes uint64 // including page cache; used if Root.Memory is true
}

// Met reports which limits a group has met.
type Met struct {
	Processes bool // a process could not be started
	Memory    bool // the group was killed for it
}
