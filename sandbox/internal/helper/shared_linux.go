//go:build linux && (amd64 || arm64)

package helper

import (
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Without a pid namespace a call's processes are among the machine's. Landlock
// keeps their signals in and other processes' memory and descriptors out; what
// changes another process of the same user besides is closed by this filter,
// which stands beside the one that every call has.

// onPassingThread runs f on a thread that ends with it. Landlock lets signals pass
// between processes under the same restrictions, and what a thread has them, its
// process has them: a helper whose restricted thread lived on could be killed by
// its call, which nothing but a pid namespace would outlast.
func onPassingThread(f func()) {
	done := make(chan struct{})
	// Ends with f, and its thread with it, since it is never unlocked.
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

// ofProcess are the calls that change a process by its number, with the argument
// that has it. Nought is the caller.
func ofProcess() map[uint32]uint32 {
	return map[uint32]uint32{
		unix.SYS_PRLIMIT64: 0, unix.SYS_SETPRIORITY: 1, unix.SYS_IOPRIO_SET: 1, unix.SYS_SCHED_SETPARAM: 0,
		unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETATTR: 0, unix.SYS_SCHED_SETAFFINITY: 0,
		unix.SYS_MIGRATE_PAGES: 0, unix.SYS_MOVE_PAGES: 0,
	}
}

// othersFilter leaves the tables of other machines to the filter that every call has.
func othersFilter() []bpf.Instruction {
	p := one(bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
	for nr, argument0 := range ofProcess() {
		p = append(p, when(nr, append(one(argument(argument0)), oneOf(0)...)...)...)
	}
	return append(p, allow())
}

// restrictOthers puts the second filter on the calling thread and on what it forks.
func restrictOthers() error {
	raw, err := bpf.Assemble(othersFilter())
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return e
	}
	return nil
}
