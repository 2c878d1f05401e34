//go:build linux

package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// int80 makes a call of the i386 table.
func int80(nr, a, b, c, d, e uintptr) uintptr

// foreign are the attempts through the system call table of i386, which has other
// numbers.
func foreign() map[string]attempt {
	return map[string]attempt{
		"int80-tcp": func(a args) (string, int, error) {
			return connect80(unix.AF_INET, rawInet(a.text(0), a.number(1)))
		},
		"int80-unix":   func(a args) (string, int, error) { return connect80(unix.AF_UNIX, rawUnix(a.text(0))) },
		"int80-ptrace": trace80,
	}
}

func call80(nr uintptr, a ...uintptr) (int, error) {
	var five [5]uintptr
	copy(five[:], a)
	r := int32(int80(nr, five[0], five[1], five[2], five[3], five[4]))
	if r < 0 {
		return -1, unix.Errno(-r)
	}
	return int(r), nil
}

func connect80(family uintptr, to []byte) (string, int, error) {
	const socket, connect = 359, 362
	s, err := call80(socket, family, unix.SOCK_STREAM, 0)
	if err != nil {
		return "int80 socket", -1, err
	}
	// A pointer of 32 bits.
	low, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_32BIT)
	if err != nil {
		return "mmap", -1, err
	}
	copy(low, to)
	if _, err := call80(connect, uintptr(s), uintptr(unsafe.Pointer(&low[0])), uintptr(len(to))); err != nil {
		return "int80 connect", -1, err
	}
	unix.Write(s, []byte("I80HIT\n"))
	return "int80 connect", 0, nil
}

func trace80(a args) (string, int, error) {
	const ptrace, attach, detach = 26, 16, 17
	pid := uintptr(a.number(0))
	if _, err := call80(ptrace, attach, pid); err != nil {
		return "int80 ptrace", -1, err
	}
	var status unix.WaitStatus
	unix.Wait4(int(pid), &status, unix.WALL, nil)
	_, err := call80(ptrace, detach, pid)
	return "int80 ptrace", 0, err
}
