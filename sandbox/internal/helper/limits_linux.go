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

// boundNumbers limits the processes of a call that runs as root, whose processes
// RLIMIT_NPROC does not count (setrlimit(2)), by the process numbers that there
// are in its namespace. Each namespace has its own limit since Linux 6.14; before,
// the file is the machine's and stays as it is. There, and where a container keeps
// it from being written, only a control group does better, and where there is one
// this is not needed.
func boundNumbers(s *Spec) (bound bool) {
	if s.Processes == 0 || s.Counted || !s.apart() || os.Getuid() != 0 || !numbersAreOurs() {
		return false
	}
	// The first numbers are used only once and then never again (RESERVED_PIDS).
	const once = 300
	limit := strconv.FormatUint(min(s.Processes, 1<<20)+once+groupNumbers, 10)
	return os.WriteFile("/proc/sys/kernel/pid_max", []byte(limit), 0) == nil
}

// groupNumbers are for groups and sessions, which hold a process number longer
// than their process lives.
const groupNumbers = 64

// startThreads starts threads for all that the helper does. Once its call has used
// up the processes it could not get any, and Go's runtime gives up without. When it
// returns they are free: no further one is started then (see restrictOthers).
func startThreads(again bool) {
	enough := 12 // it has fewer goroutines, the collector of garbage included
	if again {
		enough += mostCalls
	}
	var all, release, free sync.WaitGroup
	all.Add(enough)
	release.Add(1)
	free.Add(enough)
	for range enough {
		// Ends when each has a thread of its own, which the runtime then keeps.
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

// numbersAreOurs reports whether each namespace has its own limit of process numbers.
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

// leastFiles is how many more files the helper must be able to open.
const leastFiles = 16

// limitNumbers limits the open files and the processes of the helper, and so those
// of the shell from its first instruction on. Only lower limits can follow.
//
// The helper lives on with these limits. It has its threads already (startThreads),
// and opens few files; those it has have numbers below opened. For root the kernel
// counts no processes; see boundNumbers.
func limitNumbers(s *Spec, opened int) error {
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

// limitFiles bounds the open files. A lower soft limit stays.
func limitFiles(n, opened uint64) error {
	// Go has raised the soft limit for itself. It sets the old one again when it
	// executes another program, also when there is none, as here.
	_ = syscall.Exec("", nil, nil)
	if n < opened+leastFiles {
		return fmt.Errorf("%d are too few: the sandbox itself needs %d", n, opened+leastFiles)
	}
	return lower(unix.RLIMIT_NOFILE, n)
}

// lower sets a limit, and leaves what is lower already.
func lower(which int, n uint64) error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(which, &now); err != nil {
		return err
	}
	now.Cur, now.Max = min(now.Cur, n), min(now.Max, n)
	return syscall.Setrlimit(which, &now)
}

// noteFull tells the daemon, once, that the call has as many processes and threads
// as it may have, so that no more can be started. The helper's own count. ended are
// those that have just left the table.
func (h *holder) noteFull(all []Proc, ended uint64) {
	if h.spec.Processes == 0 || !h.spec.Counted && (!h.spec.Namespaces || os.Getuid() == 0 && !h.site.bound) {
		return // nothing bounds them
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
