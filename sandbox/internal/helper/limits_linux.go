package helper

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// boundNumbers limits the processes of a call that runs as root, whose processes
// RLIMIT_NPROC does not count (setrlimit(2)), by the process numbers that there
// are in its namespace. Each namespace has its own limit since Linux 6.14; before,
// the file is the machine's and stays as it is. There, and where a container keeps
// it from being written, nothing better is possible without a delegated cgroup.
func boundNumbers(s *Spec) (bound bool) {
	if s.Processes == 0 || !s.Namespaces || os.Getuid() != 0 || !numbersAreOurs() {
		return false
	}
	// The first numbers are used only once and then never again (RESERVED_PIDS);
	// groups and sessions hold a number longer than their process lives.
	const once, groups = 300, 64
	limit := strconv.FormatUint(min(s.Processes, 1<<20)+once+groups, 10)
	return os.WriteFile("/proc/sys/kernel/pid_max", []byte(limit), 0) == nil
}

// startThreads starts threads for all that the helper does. Once its call has used
// up the numbers it could not get any, and Go's runtime gives up without.
func startThreads() {
	const enough = 10 // it has fewer goroutines, the collector of garbage included
	var all, release sync.WaitGroup
	all.Add(enough)
	release.Add(1)
	for range enough {
		// Ends when each has a thread of its own, which the runtime then keeps.
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			release.Wait()
		}()
	}
	all.Wait()
	release.Done()
}

// numbersAreOurs tells whether the kernel has a limit of process numbers for each
// namespace.
func numbersAreOurs() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	major, rest, _ := strings.Cut(unix.ByteSliceToString(name.Release[:]), ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	n, err2 := strconv.Atoi(strings.TrimRight(minor, "-+abcdefghijklmnopqrstuvwxyz"))
	return err == nil && err2 == nil && (m > 6 || m == 6 && n >= 14)
}

// limitFiles bounds the open files of the shell from outside, as its processes are.
// The soft limit stays what the daemon was started with if that is lower: Go raises
// its own and gives the old one back to what it executes, but only to what has not
// been told another.
func (h *holder) limitFiles() error {
	if h.spec.OpenFiles == 0 {
		return nil
	}
	var now unix.Rlimit
	if err := unix.Prlimit(h.shell, unix.RLIMIT_NOFILE, nil, &now); err != nil {
		return stage("limit open files", err)
	}
	most := min(h.spec.OpenFiles, now.Max) // an inherited lower limit stays
	now.Cur, now.Max = min(now.Cur, most), most
	return stage("limit open files", unix.Prlimit(h.shell, unix.RLIMIT_NOFILE, &now, nil))
}
