// Package cgroup puts each call into a control group (cgroups(7)). A group limits what its processes use together,
// also for root, to which RLIMIT_NPROC does not apply. It knows every process, even a hidden one, so that End leaves
// none.
//
// A daemon creates groups only below its own: in version 2, if that is delegated to it, and in the version 1
// hierarchy that counts processes. Memory is limited in version 2 only; the controller of version 1 is deprecated.
package cgroup

// Limits limit all processes of a group together. Zero means unlimited.
type Limits struct {
	Processes   uint64 // including threads
	MemoryBytes uint64 // including page cache; ignored unless Root.Memory
}

// Met reports which limits a group has reached.
type Met struct {
	Processes bool // a process could not be started
	Memory    bool // the group was killed because of it
}
