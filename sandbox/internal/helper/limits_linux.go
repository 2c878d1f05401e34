package helper

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// boundNumbers limits the processes of a call of root, to which RLIMIT_NPROC does not apply (setrlimit(2)), by the
// pid_max of its namespace. Before Linux 6.14 the file is the machine's and is not changed. Then, or if a container
// denies writing it, only a control group limits processes, which makes this unnecessary.
func boundNumbers(s *Spec) (bound bool) {
	if s.Processes == 0 || s.Counted || !s.apart() {
		return false
	}
	if os.Getuid() != 0 || !numbersAreOurs() {
		return false
	}
	// The first pids are not reused (RESERVED_PIDS).
	const once = 300
	limit := strconv.FormatUint(min(s.Processes, 1<<20)+once+groupNumbers, 10)
	return os.WriteFile("/proc/sys/kernel/pid_max", []byte(limit), 0) == nil
}

// groupNumbers is a reserve for groups and sessions, which keep a pid longer than their process exists.
const groupNumbers = 64

// startThreads starts all threads that the helper needs: after its call has reached the limit of processes it could
// not start any, and Go's runtime would abort. When it returns, the threads are idle, and no further one is started
// (see restrictOthers).
func startThreads() {
	const enough = 12 // more than it has goroutines, including the garbage collector's
	var all, release, free sync.WaitGroup
	all.Add(enough)
	release.Add(1)
	free.Add(enough)
	for range enough {
		// Ends when each has its own thread, which the runtime keeps.
		go func() {
			defer free.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			release.Wait()
		}()
	}
	all.Wait()
	release.Done()
	free.Wait()
}

// numbersAreOurs reports whether each namespace has its own pid_max.
func numbersAreOurs() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	major, rest, _ := strings.Cut(unix.ByteSliceToString(name.Release[:]), ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	n, err2 := strconv.Atoi(strings.TrimRight(minor, "-+abcdefghijklmnopqrstuvwxyz"))
	isSince := m > 6 || m == 6 && n >= 14
	return err == nil && err2 == nil && isSince
}

// leastFiles is how many more files the helper must be able to open.
const leastFiles = 16

// limitNumbers limits the open files and the processes of the helper, and so those of the shell from its first
// instruction. Limits can only be lowered later.
//
// The limits also apply to the helper, which already has its threads (startThreads) and opens few files; its open
// descriptors are below opened. The kernel does not count root's processes; see boundNumbers.
func limitNumbers(s *Spec, opened int) error {
	// Go has raised the soft limit of open files, and restores it when it executes another program, even if that fails.
	_ = syscall.Exec("", nil, nil)
	if s.OpenFiles > 0 {
		if err := limitFiles(s.OpenFiles, uint64(opened)); err != nil {
			return stage("limit open files", err)
		}
	}
	if s.Processes > 0 && s.Namespaces {
		return stage("limit processes", lower(unix.RLIMIT_NPROC, s.Processes))
	}
	return nil
}

// limitFiles limits the open files. It keeps a lower soft limit.
func limitFiles(n, opened uint64) error {
	if n < opened+leastFiles {
		return fmt.Errorf("%d are too few: the sandbox itself needs %d", n, opened+leastFiles)
	}
	return lower(unix.RLIMIT_NOFILE, n)
}

func lower(which int, n uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(which, &now); err != nil {
		return err
	}
	now.Cur, now.Max = min(now.Cur, n), min(now.Max, n)
	return syscall.Setrlimit(which, &now)
}

// noteFull reports once that the call has reached its limit of processes and threads. The helper's own count. ended
// is the number of those that have just left the table.
func (h *supervisor) noteFull(all []Proc, ended uint64) {
	counts := os.Getuid() != 0 || h.site.bound // otherwise the kernel does not count; see boundNumbers
	isLimited := h.spec.Counted || h.spec.Namespaces && counts
	if h.spec.Processes == 0 || !isLimited {
		return
	}
	most, now := h.spec.Processes, ended
	if h.site.bound {
		most += groupNumbers
	}
	if !h.spec.apart() { // the table is the machine's
		self, _ := Process(os.Getpid())
		all = append(h.pick(all), self)
	}
	for _, p := range all {
		now += uint64(p.Threads)
	}
	if now >= most {
		h.full.Do(func() { send(Event{Kind: EventLimit, Text: LimitProcesses}) })
	}
}
