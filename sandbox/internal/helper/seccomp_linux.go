//go:build linux && (amd64 || arm64)

package helper

import (
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter lists what is refused, since developer tools use too many system calls for an allow list. It covers what
// the other layers cannot: terminal injection, nested user namespaces, unusual socket families, io_uring, foreign
// system call tables and rarely used parts of the kernel.
//
// Of local sockets, it allows those that must connect before they send, so that the broker can judge the connection.
// Without a broker it allows only pairs.
const (
	returnAllow = 0x7fff0000 // SECCOMP_RET_ALLOW
	returnErrno = 0x00050000 // SECCOMP_RET_ERRNO
	returnAsk   = 0x7fc00000 // SECCOMP_RET_USER_NOTIF
	returnKill  = 0x80000000 // SECCOMP_RET_KILL_PROCESS

	// Offsets in struct seccomp_data (linux/seccomp.h), little-endian.
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16

	firstX32 = 0x40000000 // numbers of the x32 table on amd64; unused elsewhere

	sysOpenTreeAttr = 467 // not in x/sys yet; the same on every architecture
	sysFchmodat2    = 452
	setDelegation   = 1040 // F_SETDELEG (Linux 6.19), not in x/sys yet

	noRandomAddresses = 0x0040000 // ADDR_NO_RANDOMIZE

	newNamespace = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME
)

// refused lists the system calls that fail with EPERM on every architecture.
func refused() []uint32 {
	return []uint32{
		// other processes
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
		unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		// large attack surface
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL, unix.SYS_FANOTIFY_INIT,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_VHANGUP, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
		// the view
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS,
		unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, sysOpenTreeAttr, unix.SYS_FSOPEN,
		unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		// the machine
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
		unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT,
		unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_SETHOSTNAME,
		unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
		unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	}
}

// ofMode maps the calls that set a file mode to the index of the argument with the mode. mkdir ignores the setID
// bits.
func ofMode() map[uint32]uint32 {
	calls := map[uint32]uint32{unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, sysFchmodat2: 2, unix.SYS_MKNODAT: 2}
	maps.Copy(calls, ofModeHere())
	return calls
}

// opening maps the calls that may create a file to the index of the flags argument, which the mode follows. The mode
// of openat2 is in memory; there the kernel alone clears the bits, when the file is written, truncated or extended.
func opening() map[uint32]uint32 {
	calls := map[uint32]uint32{unix.SYS_OPENAT: 2}
	maps.Copy(calls, openingHere())
	return calls
}

const (
	// setID are the mode bits with which a file runs with the rights of its owner or group.
	setID = unix.S_ISUID | unix.S_ISGID
	// making are the flags with which a mode is used.
	making = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// absent lists calls that return ENOSYS, so that programs use older ones: io_uring bypasses every filter, the flags
// of clone3 are in memory, where a filter cannot read them, the contexts of io_setup are counted for the whole machine
// (fs.aio-max-nr), and nothing in /proc counts the memory of memfd_secret.
func absent() []uint32 {
	return []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3,
		unix.SYS_IO_SETUP, unix.SYS_MEMFD_SECRET,
	}
}

// filter assembles the program for this architecture. brokered sends every connect to the broker.
func filter(brokered bool) []bpf.Instruction {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		bpf.RetConstant{Val: returnKill}, // e.g. int 0x80 of i386, with its own numbers
		bpf.LoadAbsolute{Off: offsetNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: firstX32, SkipTrue: 1},
		answer(unix.ENOSYS),
	}
	return append(p, search(answers(brokered))...)
}

// answers maps system calls to what decides about them; all others are allowed.
func answers(brokered bool) map[uint32][]bpf.Instruction {
	to := map[uint32][]bpf.Instruction{}
	for _, nr := range append(refused(), refusedHere()...) {
		to[nr] = one(answer(unix.EPERM))
	}
	for _, nr := range absent() {
		to[nr] = one(answer(unix.ENOSYS))
	}
	for _, nr := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		to[nr] = []bpf.Instruction{
			argument(0), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: newNamespace, SkipTrue: 1}, allow(), answer(unix.EPERM),
		}
	}
	to[unix.SYS_IOCTL] = requests()
	// A lease blocks others that open the file for writing, even if the file is read-only here; a delegation also
	// blocks those that rename or remove it.
	to[unix.SYS_FCNTL] = []bpf.Instruction{
		argument(1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.F_SETLEASE, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: setDelegation, SkipTrue: 1},
		allow(), answer(unix.EPERM),
	}
	// A setuid or setgid program in the workspace would outlive the call.
	for nr, mode := range ofMode() {
		to[nr] = withoutSetID(mode)
	}
	for nr, flags := range opening() {
		to[nr] = append([]bpf.Instruction{
			argument(flags), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: making, SkipTrue: 1}, allow(),
		}, withoutSetID(flags+1)...)
	}
	to[unix.SYS_PERSONALITY] = append(one(argument(0)), oneOf(0, 0xffffffff, noRandomAddresses)...)
	to[unix.SYS_SOCKET] = sockets(brokered)
	pairs := when(unix.AF_UNIX, append(one(argument(1)), connected()...)...)
	to[unix.SYS_SOCKETPAIR] = append(append(one(argument(0)), pairs...), answer(unix.EPERM))
	if brokered {
		to[unix.SYS_CONNECT] = one(bpf.RetConstant{Val: returnAsk})
	}
	return to
}

// requests decides about ioctl(2). It compares 32 bits of the request, like the kernel: a 64-bit comparison could be
// bypassed by setting a higher bit (CVE-2019-10063). TIOCSETD could load any line discipline of the kernel, and
// FS_IOC_SETFLAGS makes directories that ignore case (chattr +F), in which protected names have others. So they have in
// an encrypted directory without its key, and a key opens and closes directories that cannot be written.
//
// A snapshot has what is hidden or masked under another path, and its owner may make one (btrfs, bcachefs). Of the
// requests of btrfs only those that other file systems have too are allowed, which clone and compare open files.
func requests() []bpf.Instruction {
	const kind, btrfs, bcachefs = 0xff00, 0x94 << 8, 0xbc << 8
	p := one(argument(1))
	for _, request := range []uint32{unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE} {
		p = append(p, when(request, allow())...)
	}
	for _, request := range []uint32{
		unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.FS_IOC_SETFLAGS,
		unix.FS_IOC_SET_ENCRYPTION_POLICY, unix.FS_IOC_ADD_ENCRYPTION_KEY, unix.FS_IOC_REMOVE_ENCRYPTION_KEY,
	} {
		p = append(p, when(request, answer(unix.EPERM))...)
	}
	p = append(p, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: kind})
	for _, of := range []uint32{btrfs, bcachefs} {
		p = append(p, when(of, answer(unix.EPERM))...)
	}
	return append(p, allow())
}

// search finds the system call in the accumulator by bisection: the kernel tries a new filter with every number.
func search(to map[uint32][]bpf.Instruction) []bpf.Instruction {
	return bisect(to, slices.Sorted(maps.Keys(to)))
}

func bisect(to map[uint32][]bpf.Instruction, numbers []uint32) []bpf.Instruction {
	if len(numbers) == 0 {
		return one(allow())
	}
	if len(numbers) == 1 {
		return append(when(numbers[0], to[numbers[0]]...), allow())
	}
	half := len(numbers) / 2
	below, others := bisect(to, numbers[:half]), bisect(to, numbers[half:])
	p := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: numbers[half], SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(below))},
	}
	return append(append(p, below...), others...)
}

// withoutSetID allows a mode without setID bits.
func withoutSetID(mode uint32) []bpf.Instruction {
	return []bpf.Instruction{
		argument(mode), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: setID, SkipTrue: 1}, allow(), answer(unix.EPERM),
	}
}

// sockets allows TCP, UDP and ping over IP, routing queries over netlink, and local sockets. It refuses all others:
// MPTCP, SCTP, raw sockets, vsock (which reaches the host of a virtual machine), packet, alg and so on.
func sockets(brokered bool) []bpf.Instruction {
	ip := append([]bpf.Instruction{
		argument(1),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}, // without SOCK_CLOEXEC and SOCK_NONBLOCK
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: unix.SOCK_DGRAM, SkipTrue: 1},
		answer(unix.EPERM),
		argument(2),
	}, oneOf(0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6)...)
	p := one(argument(0))
	if brokered {
		p = append(p, when(unix.AF_UNIX, append(one(argument(1)), connected()...)...)...)
	}
	p = append(p, when(unix.AF_INET, ip...)...)
	p = append(p, when(unix.AF_INET6, ip...)...)
	p = append(p, when(unix.AF_NETLINK, append(one(argument(2)), oneOf(unix.NETLINK_ROUTE)...)...)...)
	return append(p, answer(unix.EPERM))
}

// connected allows the types of local sockets that cannot send before they are connected. Datagram sockets can send
// to any path; SOCK_RAW is another name for them (unix_create in the kernel's net/unix/af_unix.c).
func connected() []bpf.Instruction {
	return append(one(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}), oneOf(unix.SOCK_STREAM, unix.SOCK_SEQPACKET)...)
}

// when runs body, which must end in a return, if the accumulator equals value.
func when(value uint32, body ...bpf.Instruction) []bpf.Instruction {
	return append(one(bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: value, SkipTrue: uint8(len(body))}), body...)
}

// oneOf allows the call if the accumulator equals one of values, and otherwise refuses it.
func oneOf(values ...uint32) []bpf.Instruction {
	var p []bpf.Instruction
	for i, v := range values {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(values) - i)})
	}
	return append(p, answer(unix.EPERM), allow())
}

func one(i bpf.Instruction) []bpf.Instruction { return []bpf.Instruction{i} }

func allow() bpf.Instruction { return bpf.RetConstant{Val: returnAllow} }

func answer(e unix.Errno) bpf.Instruction { return bpf.RetConstant{Val: returnErrno | uint32(e)} }

func argument(n uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: offsetArgs + 8*n, Size: 4}
}

// program is a filter for the kernel.
type program []unix.SockFilter

// assemble returns an empty program, which the kernel refuses, if a jump is too long.
func assemble(filter []bpf.Instruction) program {
	raw, err := bpf.Assemble(filter)
	if err != nil {
		return nil
	}
	p := make(program, len(raw))
	for i, r := range raw {
		p[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return p
}

// install installs the filter on the calling thread. With NEW_LISTENER it returns a descriptor.
func (p program) install(flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: unsafe.SliceData(p)}
	fd, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return -1, e
	}
	return int(fd), nil
}
