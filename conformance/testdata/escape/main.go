//go:build linux

//go:debug containermaxprocs=0

// Command escape tries one way out of a sandbox each time it runs: the first word
// names the primitive, the others are its arguments. It prints "NAME: OK n" or
// "NAME: BLOCKED why" and ends with 0 or 1. It also plays the parts of the world
// around a case: the daemon that is attacked, and tools that a machine may lack.
//
// It calls the kernel directly wherever a library would do something else first.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// attempt is one way out. It returns what the kernel returned.
type attempt func(a args) (name string, got int, err error)

// args are the words after the name of an attempt.
type args []string

func (a args) text(n int) string {
	if n < len(a) {
		return a[n]
	}
	return ""
}

// number reads a word as C does: 0x is hexadecimal. What is none is 0.
func (a args) number(n int) int {
	v, _ := strconv.ParseInt(a.text(n), 0, 64)
	return int(v)
}

func main() {
	name, rest := filepath.Base(os.Args[0]), os.Args[1:]
	if _, ok := roles()[name]; !ok {
		if len(rest) == 0 {
			os.Exit(2)
		}
		name, rest = rest[0], rest[1:]
	}
	if role, ok := roles()[name]; ok {
		os.Exit(role(rest))
	}
	for _, table := range []map[string]attempt{network(), sockets(), processes(), byName(), fresh(), kernel(), mounts(), rings(), resources(), foreign()} {
		if try, ok := table[name]; ok {
			os.Exit(report(try(rest)))
		}
	}
	fmt.Println("unknown", name)
	os.Exit(2)
}

// roles are what the program is when it is not an attempt.
func roles() map[string]func(args) int {
	return map[string]func(args) int{
		"daemon": daemon, "racer": racer, "getfattr": getfattr, "setfattr": setfattr, "socat": socat, "curl": curl, "dig": dig, "devices": devices,
		"exchange": exchange, "fds": fds, "euid": euid, "ttyname": ttyname, "without-landlock": withoutLandlock, "lender": lender,
	}
}

func report(name string, got int, err error) int {
	if err != nil {
		fmt.Printf("%s: BLOCKED %v\n", name, err)
		return 1
	}
	fmt.Printf("%s: OK %d\n", name, got)
	return 0
}

// call makes a system call.
func call(nr uintptr, a ...uintptr) (int, error) {
	var six [6]uintptr
	copy(six[:], a)
	r, _, e := unix.Syscall6(nr, six[0], six[1], six[2], six[3], six[4], six[5])
	if e != 0 {
		return int(r), e
	}
	return int(r), nil
}

func euid(args) int {
	fmt.Printf("EUID=%d\n", os.Geteuid())
	return 0
}

func ttyname(args) int {
	name, err := os.Readlink("/proc/self/fd/0")
	if _, bad := unix.IoctlGetTermios(0, unix.TCGETS); err != nil || bad != nil {
		name = "not a terminal"
	}
	fmt.Printf("tty=%s\n", name)
	return 0
}

// fds lists the descriptors that came with the program. The Go runtime has opened
// none of its own so early.
func fds(args) int {
	for fd := 3; fd < 1024; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			continue
		}
		to, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if to != "anon_inode:[eventpoll]" && to != "anon_inode:[eventfd]" {
			fmt.Printf("FD %d -> %s\n", fd, to)
		}
	}
	return 0
}
