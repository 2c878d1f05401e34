// Package cgroup gives each call a control group of its own (cgroups(7)). The
// group bounds what all processes of the call take together, whoever runs them:
// RLIMIT_NPROC does not hold for root. It also knows every process of the call,
// whatever that has done to hide, so that its end leaves none.
//
// A daemon uses the part of the machine's hierarchy that it was given: it makes
// groups below its own and nowhere else. It works with version 2, where that is
// delegated, and with the hierarchy of version 1 that counts processes. Memory is
// bounded in version 2 only: that of version 1 is given up by its makers.
package cgroup

// Limits bound all processes of a group together. Zero means unlimited.
type Limits struct {
	Processes   uint64 // and threads
	MemoryBytes uint64 // with the files that it keeps in memory; used where Root.Memory is true
}

// Met tells which limits a group has met.
type Met struct {
	Processes bool // a process could not be started
	Memory    bool // for which all of the group was killed
}
