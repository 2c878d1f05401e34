//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernel are the attempts on parts of the kernel that tools do not need.
func kernel() map[string]attempt {
	return map[string]attempt{
		"userns": func(args) (string, int, error) {
			return inChild("unshare(NEWUSER)", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
		},
		"clone3ns": cloneNamespace, "setns": enterNamespace, "bpf": makeMap, "perf": countClock,
		"uffd": func(args) (string, int, error) {
			n, err := call(unix.SYS_USERFAULTFD, 1) // UFFD_USER_MODE_ONLY
			return "userfaultfd", n, err
		},
		"keyctl": func(args) (string, int, error) {
			n, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
			return "keyctl user keyring", n, err
		},
		"keyread": readKey, "addkey": addKey, "rmkey": removeKey,
		"personality": func(args) (string, int, error) {
			n, err := call(unix.SYS_PERSONALITY, 0x0400000) // READ_IMPLIES_EXEC
			return "personality", n, err
		},
		"shm": readShared, "mkshm": makeShared, "rmshm": removeShared,
		"mq": readQueue, "mkmq": makeQueue, "rmmq": removeQueue,
		"syscall": anyCall,
	}
}

// inChild makes a call in a child, which has one thread only: some calls refuse
// any other process.
func inChild(name string, nr uintptr, a uintptr) (string, int, error) {
	pid, _, e := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		return "clone", -1, e
	}
	if pid == 0 {
		_, _, e = syscall.RawSyscall(nr, a, 0, 0)
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(e), 0, 0)
	}
	return waitFor(name, int(pid))
}

// waitFor takes the child's exit status for the error that it met.
func waitFor(name string, pid int) (string, int, error) {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		return name, -1, err
	}
	if code := status.ExitStatus(); code != 0 {
		return name, -1, syscall.Errno(code)
	}
	return name, 0, nil
}

func cloneNamespace(args) (string, int, error) {
	a := [11]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)} // struct clone_args: flags, …, exit_signal
	pid, _, e := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a), 0)
	if e != 0 {
		return "clone3(NEWUSER)", -1, e
	}
	if pid == 0 {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return waitFor("clone3(NEWUSER)", int(pid))
}

func enterNamespace(a args) (string, int, error) {
	fd, err := unix.Open(a.text(0), unix.O_RDONLY, 0)
	if err != nil {
		return "open ns", -1, err
	}
	return inChild("setns", unix.SYS_SETNS, uintptr(fd))
}

func makeMap(args) (string, int, error) {
	a := [30]uint32{0: 2 /* BPF_MAP_TYPE_ARRAY */, 1: 4, 2: 4, 3: 1}
	n, err := call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a))
	return "bpf", n, err
}

func countClock(args) (string, int, error) {
	a := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Bits: unix.PerfBitExcludeKernel}
	a.Size = uint32(unsafe.Sizeof(a))
	n, err := unix.PerfEventOpen(&a, 0, -1, -1, 0)
	return "perf_event_open", n, err
}

func readKey(a args) (string, int, error) {
	id, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", a.text(0), 0)
	if err != nil {
		return "keyctl search", -1, err
	}
	b := make([]byte, 127)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, b, 0)
	if err == nil {
		fmt.Printf("KEY=%s\n", b[:min(n, len(b))])
	}
	return "keyctl read", n, err
}

const daemonKey = "toold-d-test"

func addKey(args) (string, int, error) {
	id, err := unix.AddKey("user", daemonKey, []byte("SECRETKEY"), unix.KEY_SPEC_USER_KEYRING)
	return "add_key", id, err
}

func removeKey(args) (string, int, error) {
	id, err := unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", daemonKey, 0)
	if err == nil {
		_, err = unix.KeyctlInt(unix.KEYCTL_REVOKE, id, 0, 0, 0)
	}
	return "revoke", id, err
}

func readShared(a args) (string, int, error) {
	id, err := unix.SysvShmGet(a.number(0), 0, 0)
	if err != nil {
		return "shmget", -1, err
	}
	b, err := unix.SysvShmAttach(id, 0, 0)
	if err == nil {
		fmt.Printf("SHM=%s\n", b[:9])
	}
	return "shmat", id, err
}

func makeShared(a args) (string, int, error) {
	id, err := unix.SysvShmGet(a.number(0), 4096, unix.IPC_CREAT|0o600)
	if err != nil {
		return "mkshm", -1, err
	}
	b, err := unix.SysvShmAttach(id, 0, 0)
	copy(b, "SHMSECRET")
	return "mkshm", id, err
}

func removeShared(a args) (string, int, error) {
	id, err := unix.SysvShmGet(a.number(0), 0, 0)
	if err == nil {
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
	return "rmshm", id, err
}

// openQueue opens a message queue. The kernel's names lack the slash that those of
// the library have (mq_open(3)).
func openQueue(a args, flags int, attr unsafe.Pointer) (int, error) {
	name, err := unix.BytePtrFromString(queueName(a))
	if err != nil {
		return -1, err
	}
	return call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), uintptr(flags), 0o600, uintptr(attr))
}

func queueName(a args) string {
	name := a.text(0)
	for len(name) > 0 && name[0] == '/' {
		name = name[1:]
	}
	return name
}

func readQueue(a args) (string, int, error) {
	q, err := openQueue(a, unix.O_RDONLY|unix.O_NONBLOCK, nil)
	if err != nil {
		return "mq_open", -1, err
	}
	b := make([]byte, 8192)
	if n, err := call(unix.SYS_MQ_TIMEDRECEIVE, uintptr(q), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))); err == nil {
		fmt.Printf("MQ=%s\n", b[:n])
	}
	return "mq_open", 0, nil
}

func makeQueue(a args) (string, int, error) {
	attr := [8]int64{1: 5, 2: 64} // at most 5 messages of 64 bytes
	q, err := openQueue(a, unix.O_CREAT|unix.O_RDWR, unsafe.Pointer(&attr))
	secret := []byte("MQSECRET")
	for n := 0; n < 5 && err == nil; n++ {
		_, err = call(unix.SYS_MQ_TIMEDSEND, uintptr(q), uintptr(unsafe.Pointer(&secret[0])), uintptr(len(secret)))
	}
	return "mkmq", q, err
}

func removeQueue(a args) (string, int, error) {
	name, err := unix.BytePtrFromString(queueName(a))
	if err == nil {
		_, err = call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)))
	}
	return "rmmq", 0, err
}

// anyCall makes a call by number with numbers as arguments; "@…" is a text, "=…"
// a block of 64 bit numbers separated by commas.
func anyCall(a args) (string, int, error) {
	var six [6]uintptr
	for i := range min(len(a)-1, 6) {
		six[i] = argument(a, i+1)
	}
	n, err := call(uintptr(a.number(0)), six[:]...)
	return "syscall", n, err
}

func argument(a args, n int) uintptr {
	word := a.text(n)
	switch {
	case word != "" && word[0] == '@':
		text := append([]byte(word[1:]), 0)
		return uintptr(unsafe.Pointer(&text[0]))
	case word != "" && word[0] == '=':
		block := make([]byte, 256)
		for i, v := range splitNumbers(word[1:]) {
			binary.NativeEndian.PutUint64(block[8*i:], uint64(v))
		}
		return uintptr(unsafe.Pointer(&block[0]))
	}
	return uintptr(a.number(n))
}

func splitNumbers(s string) (list []int) {
	begin := 0
	for i := 0; i <= len(s) && len(list) < 32; i++ {
		if i == len(s) || s[i] == ',' {
			list = append(list, args{s[begin:i]}.number(0))
			begin = i + 1
		}
	}
	return list
}
