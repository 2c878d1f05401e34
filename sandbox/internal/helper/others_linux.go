//go:build linux && (amd64 || arm64)

package helper

import (
	"os"
	"strconv"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Without a PID namespace, a call's processes are among the machine's. Landlock restricts their signals, and protects
// the memory and descriptors of other processes. This additional filter refuses the other ways to change a process of
// the same user.

// ofProcess maps the calls that change a process to the index of the argument with its pid. 0 is the caller.
func ofProcess() map[uint32]uint32 {
	return map[uint32]uint32{
		unix.SYS_PRLIMIT64: 0, unix.SYS_SCHED_SETPARAM: 0,
		unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETATTR: 0, unix.SYS_SCHED_SETAFFINITY: 0,
		unix.SYS_MIGRATE_PAGES: 0, unix.SYS_MOVE_PAGES: 0,
	}
}

// othersFilter refuses changes to the processes from 1 to last. It leaves foreign system call tables to the main
// filter.
func othersFilter(last uint32) []bpf.Instruction {
	free := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: last, SkipTrue: 1},
		answer(unix.EPERM), allow(),
	}
	p := one(bpf.LoadAbsolute{Off: offsetNumber, Size: 4})
	// With these, 0 can also mean all processes of the user.
	for nr, ofUser := range map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_USER, unix.SYS_IOPRIO_SET: ioprioUser} {
		p = append(p, when(nr, append([]bpf.Instruction{
			argument(0), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: ofUser, SkipTrue: 1}, answer(unix.EPERM), argument(1),
		}, free...)...)...)
	}
	for nr, argument0 := range ofProcess() {
		p = append(p, when(nr, append(one(argument(argument0)), free...)...)...)
	}
	return append(p, allow())
}

// restrictOthers installs the second filter on the calling thread and its children: they cannot change the machine's
// processes or the helper's threads, of which all must exist.
func restrictOthers(s *Spec) error {
	last := ^uint32(0)
	if s.apart() {
		var err error
		if last, err = lastThread(); err != nil {
			return err
		}
	}
	_, err := assemble(othersFilter(last)).install(0)
	return err
}

// threadCount returns the number of threads of this process, and a constant: the links of a directory that has a
// directory for each.
func threadCount() (n uint32, err error) {
	var st unix.Statx_t
	err = unix.Statx(unix.AT_FDCWD, "/proc/self/task", 0, unix.STATX_NLINK, &st)
	return st.Nlink, err
}

// lastThread returns the highest thread id of this process. Those of the call are higher.
func lastThread() (last uint32, err error) {
	threads, err := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		if n, err := strconv.ParseUint(t.Name(), 10, 32); err == nil {
			last = max(last, uint32(n))
		}
	}
	return last, err
}

const ioprioUser = 3 // IOPRIO_WHO_USER (linux/ioprio.h)
