//go:build linux

package main

import (
	"fmt"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// resources are the attempts to take more than a call may have.
func resources() map[string]attempt {
	return map[string]attempt{"fork": forkMany, "mem": takeMemory, "fsize": growFile}
}

// forkMany starts children that stay for 0.7 s.
func forkMany(a args) (string, int, error) {
	stay := unix.NsecToTimespec(700e6)
	n := 0
	var failed syscall.Errno
	for ; n < a.number(0); n++ {
		pid, _, e := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if e != 0 {
			failed = e
			break
		}
		if pid == 0 {
			syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&stay)), 0, 0)
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	fmt.Println("FORKED", n)
	if failed != 0 {
		return "fork", n, failed
	}
	return "fork", n, nil
}

// takeMemory takes so many MiB, and uses them.
func takeMemory(a args) (string, int, error) {
	n := 0
	for ; n < a.number(0); n++ {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			fmt.Printf("MEM %d MB\n", n)
			return "mmap", n, err
		}
		for at := 0; at < len(b); at += 4096 {
			b[at] = 1
		}
	}
	fmt.Printf("MEM %d MB\n", n)
	return "mmap", n, nil
}

func growFile(a args) (string, int, error) {
	signal.Ignore(unix.SIGXFSZ)
	fd, err := unix.Open(a.text(0), unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		return "open", -1, err
	}
	return "ftruncate", 0, unix.Ftruncate(fd, int64(a.number(1))<<20)
}
