//go:build linux

package main

import (
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

// processes are the attempts on other processes.
func processes() map[string]attempt {
	return map[string]attempt{
		"kill": func(a args) (string, int, error) {
			return "kill", 0, unix.Kill(a.number(0), unix.Signal(a.number(1)))
		},
		"ptrace": trace, "pvm": readMemory, "pidfdkill": signalByDescriptor, "pidfdget": stealDescriptor,
		"setown": signalByOwner, "prlimit": lowerLimit, "affinity": pinToOneCore,
		"renice": func(a args) (string, int, error) {
			return "setpriority", 0, unix.Setpriority(unix.PRIO_PROCESS, a.number(0), 19)
		},
	}
}

func trace(a args) (string, int, error) {
	runtime.LockOSThread()
	pid := a.number(0)
	if err := unix.PtraceAttach(pid); err != nil {
		return "ptrace", -1, err
	}
	var status unix.WaitStatus
	unix.Wait4(pid, &status, unix.WALL, nil)
	return "ptrace", 0, unix.PtraceDetach(pid)
}

func readMemory(a args) (string, int, error) {
	var b [64]byte
	from, _ := strconv.ParseUint(a.text(1), 0, 64)
	here := []unix.Iovec{{Base: &b[0], Len: 64}}
	there := []unix.RemoteIovec{{Base: uintptr(from), Len: 64}}
	n, err := unix.ProcessVMReadv(a.number(0), here, there, 0)
	return "process_vm_readv", n, err
}

func signalByDescriptor(a args) (string, int, error) {
	fd, err := unix.PidfdOpen(a.number(0), 0)
	if err != nil {
		return "pidfd_open", -1, err
	}
	return "pidfd_send_signal", 0, unix.PidfdSendSignal(fd, unix.Signal(a.number(1)), nil, 0)
}

func stealDescriptor(a args) (string, int, error) {
	fd, err := unix.PidfdOpen(a.number(0), 0)
	if err != nil {
		return "pidfd_open", -1, err
	}
	for n := range 20 {
		var got int
		if got, err = unix.PidfdGetfd(fd, n, 0); err == nil {
			return "pidfd_getfd", got, nil
		}
	}
	return "pidfd_getfd", -1, err
}

// signalByOwner makes another process the owner of a pipe that has news for it.
func signalByOwner(a args) (string, int, error) {
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		return "pipe", -1, err
	}
	call(unix.SYS_FCNTL, uintptr(pipe[0]), unix.F_SETOWN, uintptr(a.number(0)))
	call(unix.SYS_FCNTL, uintptr(pipe[0]), unix.F_SETSIG, uintptr(a.number(1)))
	call(unix.SYS_FCNTL, uintptr(pipe[0]), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK)
	unix.Write(pipe[1], []byte("x"))
	time.Sleep(100 * time.Millisecond)
	return "F_SETOWN+SIGIO", 0, nil
}

func lowerLimit(a args) (string, int, error) {
	return "prlimit", 0, unix.Prlimit(a.number(0), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil)
}

func pinToOneCore(a args) (string, int, error) {
	first := uint64(1)
	_, err := call(unix.SYS_SCHED_SETAFFINITY, uintptr(a.number(0)), 8, uintptr(unsafe.Pointer(&first)))
	return "sched_setaffinity", 0, err
}
