//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fresh are attempts through what kernels have had for a few years only, and through
// corners of older calls.
func fresh() map[string]attempt {
	return map[string]attempt{
		"lease": lease, "suid": setUserBit, "watchers": makeWatchers, "shmfill": fillShared, "memfdfill": fillMemfd, "mapfill": fillMapping, "inodes": makeFiles,
		"fileioctl": fileIoctl, "ownfilter": ownFilter, "times": setTimes, "xattrat": xattrAt, "fileattr": fileAttributes,
		"pidfdns": namespaceOfProcess, "scanself": scanParent, "statmount": listMounts, "prctl": processControl, "setprio": lowerAll,
		"sendunix": sendUnconnected, "writefd": writeHeld, "peerpidfd": peerDescriptor, "masterpty": masterIoctl,
	}
}

// lease holds up whoever opens a file for writing (fcntl(2), F_SETLEASE).
func lease(a args) (string, int, error) {
	fd, err := unix.Open(a.text(0), unix.O_RDONLY, 0)
	if err != nil {
		return "open", -1, err
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	return "lease", 0, err
}

// setUserBit makes a program that runs with the rights of its owner, in each way.
func setUserBit(a args) (string, int, error) {
	path := a.text(0)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		return "write", -1, err
	}
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return "name", -1, err
	}
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return "open", -1, err
	}
	at, here := uintptr(unsafe.Pointer(name)), unix.AT_FDCWD
	mode, done := uint32(0o4755), 0
	if len(a) > 1 && a.text(1) == "group" {
		mode = 0o2755
	}
	const fchmodat2 = 452
	for way, try := range map[string]func() (int, error){
		"chmod":     func() (int, error) { return 0, unix.Chmod(path, mode) },
		"fchmod":    func() (int, error) { return 0, unix.Fchmod(fd, mode) },
		"fchmodat":  func() (int, error) { return call(unix.SYS_FCHMODAT, uintptr(here), at, uintptr(mode)) },
		"fchmodat2": func() (int, error) { return call(fchmodat2, uintptr(here), at, uintptr(mode), 0) },
		"high bits": func() (int, error) { return call(unix.SYS_FCHMODAT, uintptr(here), at, uintptr(mode)|1<<32) },
		"mknod":     func() (int, error) { return 0, unix.Mknod(path+".n", unix.S_IFREG|mode, 0) },
		"open": func() (int, error) {
			return unix.Open(path+".o", unix.O_CREAT|unix.O_WRONLY, mode)
		},
	} {
		_, err := try()
		for _, p := range []string{path, path + ".n", path + ".o"} {
			var st unix.Stat_t
			if unix.Stat(p, &st) == nil && st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
				fmt.Printf("%s: the bit is set (%v)\n", way, err)
				done++
				os.Chmod(p, 0o755)
			}
		}
	}
	if done == 0 {
		return "suid", -1, unix.EPERM
	}
	return "suid", done, nil
}

// makeWatchers uses up what a user may have of inotify.
func makeWatchers(a args) (string, int, error) {
	n := 0
	for ; n < a.number(0); n++ {
		if _, err := unix.InotifyInit1(0); err != nil {
			break
		}
	}
	fmt.Println("WATCHERS", n)
	return "watchers", n, nil
}

// makeFiles makes N empty files in a folder.
func makeFiles(a args) (string, int, error) {
	if err := os.MkdirAll(a.text(0), 0o700); err != nil {
		return "mkdir", -1, err
	}
	n := 0
	for ; n < a.number(1); n++ {
		fd, err := unix.Open(a.text(0)+"/"+strconv.Itoa(n), unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err != nil {
			break
		}
		unix.Close(fd)
	}
	fmt.Println("INODES", n)
	return "inodes", n, nil
}

// fillShared takes MIB of memory that no process has mapped (shmget(2)).
func fillShared(a args) (string, int, error) {
	for n := 0; n < a.number(0); n += 256 {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 256<<20, unix.IPC_CREAT|0o600)
		if err != nil {
			return "shmget", n, err
		}
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return "shmat", n, err
		}
		touch(b)
		unix.SysvShmDetach(b)
	}
	return hold("SHM", a)
}

// fillMemfd takes MIB of memory in files without a name, which no process has mapped.
func fillMemfd(a args) (string, int, error) {
	block := make([]byte, 1<<20)
	fd := -1
	for n := range a.number(0) {
		var err error
		if n%256 == 0 {
			fd, err = unix.MemfdCreate("x", 0)
		}
		if err == nil {
			_, err = unix.Write(fd, block)
		}
		if err != nil {
			return "memfd", n, err
		}
	}
	return hold("MEMFD", a)
}

// fillMapping takes MIB of memory that could be shared.
func fillMapping(a args) (string, int, error) {
	b, err := unix.Mmap(-1, 0, a.number(0)<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return "mmap", -1, err
	}
	touch(b)
	return hold("MAPPED", a)
}

func touch(b []byte) {
	for at := 0; at < len(b); at += 4096 {
		b[at] = 1
	}
}

// hold keeps what was taken for a while, and says so at the end.
func hold(what string, a args) (string, int, error) {
	time.Sleep(time.Second)
	fmt.Println("HELD", what, a.number(0))
	return what, a.number(0), nil
}

// fileIoctl asks a file for something by number, with a block of numbers.
func fileIoctl(a args) (string, int, error) {
	fd, err := unix.Open(a.text(0), unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "open", -1, err
	}
	block := make([]byte, 4096)
	for i := range len(a) - 2 {
		*(*uint32)(unsafe.Pointer(&block[4*i])) = uint32(a.number(i + 2))
	}
	n, err := call(unix.SYS_IOCTL, uintptr(fd), uintptr(a.number(1)), uintptr(unsafe.Pointer(&block[0])))
	return "ioctl", n, err
}

// ownFilter puts a filter over that of the sandbox, which allows all, and then
// connects to PATH.
func ownFilter(a args) (string, int, error) {
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000}}
	fprog := unix.SockFprog{Len: 1, Filter: &program[0]}
	for _, flags := range []uintptr{0, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, unix.SECCOMP_FILTER_FLAG_TSYNC} {
		call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	}
	return local(&unix.SockaddrUnix{Name: a.text(0)}, unix.SOCK_STREAM, a.text(0))
}

func setTimes(a args) (string, int, error) {
	long := []unix.Timespec{{Sec: 1}, {Sec: 1}}
	return "utimensat", 0, unix.UtimesNanoAt(unix.AT_FDCWD, a.text(0), long, unix.AT_SYMLINK_NOFOLLOW)
}

// xattrAt sets an attribute by the newest call for it: PATH NAME.
func xattrAt(a args) (string, int, error) {
	const setxattrat = 463
	path, _ := unix.BytePtrFromString(a.text(0))
	name, _ := unix.BytePtrFromString(a.text(1))
	value := []byte("1")
	block := struct {
		value       uint64
		size, flags uint32
	}{uint64(uintptr(unsafe.Pointer(&value[0]))), 1, 0}
	here := unix.AT_FDCWD
	n, err := call(setxattrat, uintptr(here), uintptr(unsafe.Pointer(path)), 0, uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&block)), unsafe.Sizeof(block))
	return "setxattrat", n, err
}

// fileAttributes sets the flags of a file (file_setattr, Linux 6.17).
func fileAttributes(a args) (string, int, error) {
	const fileSetattr = 469
	path, _ := unix.BytePtrFromString(a.text(0))
	block := [3]uint64{0: 0x80} // FS_XFLAG_NODUMP
	here := unix.AT_FDCWD
	n, err := call(fileSetattr, uintptr(here), uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&block)), unsafe.Sizeof(block), 0)
	return "file_setattr", n, err
}

// namespaceOfProcess asks the descriptor of a process for its namespaces (PIDFD_GET_…).
func namespaceOfProcess(a args) (string, int, error) {
	fd, err := unix.PidfdOpen(a.number(0), 0)
	if err != nil {
		return "pidfd_open", -1, err
	}
	for request := 0xff01; request <= 0xff0a; request++ {
		ns, err := call(unix.SYS_IOCTL, uintptr(fd), uintptr(request), 0)
		if err == nil {
			if _, err := call(unix.SYS_SETNS, uintptr(ns), 0); err == nil {
				return "namespace", ns, nil
			}
		}
	}
	_, err = call(unix.SYS_SETNS, uintptr(fd), unix.CLONE_NEWNS|unix.CLONE_NEWNET)
	return "namespace", -1, err
}

// scanParent looks for a text, given in two parts, in the memory of the shell.
func scanParent(a args) (string, int, error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", os.Getppid()))
	if err != nil {
		return "maps", -1, err
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", os.Getppid()))
	if err != nil {
		return "mem", -1, err
	}
	text, found := a.text(0)+a.text(1), 0
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil || to-from > 64<<20 {
			continue
		}
		b := make([]byte, to-from)
		n, _ := mem.ReadAt(b, from)
		found += strings.Count(string(b[:n]), text)
	}
	fmt.Println("SCANNED")
	if found == 0 {
		return "scan", -1, unix.ENOENT
	}
	return "scan", found, nil
}

// listMounts asks for the mounts of another namespace, whose number is guessed.
func listMounts(a args) (string, int, error) {
	const listmount = 458
	request := [4]uint64{0: 32, 1: ^uint64(0), 3: uint64(a.number(0))} // size, LSMT_ROOT, the namespace
	list := make([]uint64, 512)
	n, err := call(listmount, uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(&list[0])), uintptr(len(list)), 0)
	return "listmount", n, err
}

func processControl(a args) (string, int, error) {
	n, err := call(unix.SYS_PRCTL, uintptr(a.number(0)), uintptr(a.number(1)), uintptr(a.number(2)), uintptr(a.number(3)), uintptr(a.number(4)))
	return "prctl", n, err
}

// lowerAll puts all processes of the user last.
func lowerAll(args) (string, int, error) {
	unix.Setpriority(unix.PRIO_USER, os.Getuid(), 17)
	call(unix.SYS_IOPRIO_SET, 3, uintptr(os.Getuid()), 3<<13)
	call(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGUSR1))
	return "all", 0, nil
}

// sendUnconnected sends to a local socket by its address, without a connection.
func sendUnconnected(a args) (string, int, error) {
	to := &unix.SockaddrUnix{Name: a.text(0)}
	sent := -1
	var err error
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET, unix.SOCK_DGRAM, unix.SOCK_RAW} {
		pair, bad := unix.Socketpair(unix.AF_UNIX, kind, 0)
		if bad != nil {
			err = bad
			continue
		}
		for _, flags := range []int{0, unix.MSG_FASTOPEN, unix.MSG_OOB} {
			if err = unix.Sendto(pair[0], []byte("SENT\n"), flags, to); err == nil {
				sent = kind
			}
		}
		unix.Connect(pair[0], &unix.SockaddrUnix{}) // AF_UNSPEC parts a pair
		unix.Connect(pair[0], to)
		unix.Write(pair[0], []byte("SENT\n"))
	}
	return "sendto", sent, err
}

// writeHeld tries to write through descriptors that were opened for reading.
func writeHeld(a args) (string, int, error) {
	fd, err := unix.Open(a.text(0), unix.O_RDONLY, 0)
	if err != nil {
		return "open", -1, err
	}
	again := "/proc/self/fd/" + strconv.Itoa(fd)
	for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_WRONLY | unix.O_TRUNC, unix.O_WRONLY | unix.O_APPEND} {
		if w, err := unix.Open(again, flags, 0); err == nil {
			unix.Write(w, []byte("x"))
			return "reopen", w, nil
		}
	}
	if err := unix.Fchmod(fd, 0o666); err == nil {
		return "fchmod", fd, nil
	}
	if err := unix.Futimes(fd, []unix.Timeval{{}, {}}); err == nil {
		return "futimes", fd, nil
	}
	if err := unix.Linkat(unix.AT_FDCWD, again, unix.AT_FDCWD, a.text(1), unix.AT_SYMLINK_FOLLOW); err == nil {
		return "linkat", fd, nil
	}
	_, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return "mmap", fd, err
}

// peerDescriptor asks a socket for the process at its other end.
func peerDescriptor(a args) (string, int, error) {
	const peerPidfd = 77
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return "socket", -1, err
	}
	bad := unix.Connect(s, &unix.SockaddrUnix{Name: a.text(0)})
	fd, err := unix.GetsockoptInt(s, unix.SOL_SOCKET, peerPidfd)
	if bad == nil && err == nil {
		return "peer", fd, unix.PidfdSendSignal(fd, unix.SIGUSR1, nil, 0)
	}
	return "peer", -1, unix.EACCES
}

// masterIoctl asks the master of a pair of its own for something by number.
func masterIoctl(a args) (string, int, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return "ptmx", -1, err
	}
	var b [128]byte
	n, err := call(unix.SYS_IOCTL, uintptr(fd), uintptr(a.number(0)), uintptr(unsafe.Pointer(&b)))
	return "ptmx", n, err
}

// devices lists what is in /dev.
func devices(args) int {
	filepath.WalkDir("/dev", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type()&os.ModeDevice != 0 {
			fmt.Println("DEVICE", path)
		}
		return nil
	})
	return 0
}
