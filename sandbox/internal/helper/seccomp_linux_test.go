//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

const (
	deny    = returnErrno | uint32(unix.EPERM)
	missing = returnErrno | uint32(unix.ENOSYS)
)

// machine runs the filter as the kernel would. x/net/bpf loads big-endian words,
// so each is written that way at its little-endian place.
func machine(t testing.TB, brokered bool) func(arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	vm := must.Get(bpf.NewVM(filter(brokered)))(t)
	return func(arch, nr uint32, args ...uint64) uint32 {
		var b [64]byte
		binary.BigEndian.PutUint32(b[offsetNumber:], nr)
		binary.BigEndian.PutUint32(b[offsetArch:], arch)
		for i, a := range args {
			binary.BigEndian.PutUint32(b[offsetArgs+8*i:], uint32(a))
			binary.BigEndian.PutUint32(b[offsetArgs+8*i+4:], uint32(a>>32))
		}
		got, err := vm.Run(b[:])
		if err != nil {
			panic(err) // t may be of a fuzz test, whose body must not use it
		}
		return uint32(got)
	}
}

// tables are all numbers that a machine has calls for, with room for those to come.
const tables = 1024

func TestEveryCallOfEveryTableHasItsAnswer(t *testing.T) {
	t.Parallel()
	for _, brokered := range []bool{true, false} {
		run := machine(t, brokered)
		for nr := range uint32(tables) {
			if want, ok := answerTo(nr, brokered); ok {
				if got := run(nativeArch, nr); got != want {
					t.Errorf("call %d: got %#x, want %#x", nr, got, want)
				}
			}
			if got := run(nativeArch, nr|firstX32); got != missing {
				t.Errorf("x32 call %d: got %#x", nr, got)
			}
			for _, arch := range []uint32{0, unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, nativeArch ^ 1} {
				if got := run(arch, nr); got != returnKill {
					t.Errorf("call %d of machine %#x: got %#x", nr, arch, got)
				}
			}
		}
	}
}

// answerTo is what the filter must answer to a call whatever its arguments; false
// where they decide.
func answerTo(nr uint32, brokered bool) (uint32, bool) {
	conditional := []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE, unix.SYS_IOCTL, unix.SYS_PERSONALITY, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_FCNTL}
	conditional = append(conditional, slices.Collect(maps.Keys(ofMode()))...)
	conditional = append(conditional, slices.Collect(maps.Keys(opening()))...)
	switch {
	case slices.Contains(append(refused(), refusedHere()...), nr):
		return deny, true
	case slices.Contains(absent(), nr):
		return missing, true
	case brokered && nr == unix.SYS_CONNECT:
		return returnAsk, true
	}
	return returnAllow, !slices.Contains(conditional, nr)
}

// A bit above the 32 that count makes no call another one.
func TestHighBitsOfArgumentsChangeNothing(t *testing.T) {
	t.Parallel()
	run := machine(t, true)
	for _, nr := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE, unix.SYS_IOCTL, unix.SYS_PERSONALITY, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		for _, a := range []uint64{0, 1, 2, 5, 8, 16, 40, 0x5412, 0x541c, 0x40000, 0x10000000, 0xffffffff} {
			for _, b := range []uint64{0, 1, 2, 3, 5, 0x5412, 0x541c, 0x80001, 0x80802} {
				plain := run(nativeArch, nr, a, b, 0)
				if got := run(nativeArch, nr, a|1<<32, b|1<<63, 1<<40); got != plain {
					t.Errorf("call %d (%#x, %#x): %#x becomes %#x", nr, a, b, plain, got)
				}
			}
		}
	}
}

func TestArgumentsDecide(t *testing.T) {
	t.Parallel()
	run := machine(t, true)
	for _, c := range []struct {
		name string
		nr   uint32
		args []uint64
		want uint32
	}{
		{"TIOCSTI", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, deny},
		{"TIOCSTI with a bit the kernel does not see", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI | 1<<32}, deny},
		{"TIOCLINUX", unix.SYS_IOCTL, []uint64{0, unix.TIOCLINUX}, deny},
		{"TIOCSETD", unix.SYS_IOCTL, []uint64{0, unix.TIOCSETD | 1<<63}, deny},
		{"snapshot (BTRFS_IOC_SNAP_CREATE_V2)", unix.SYS_IOCTL, []uint64{0, 0x50009417}, deny},
		{"snapshot with a bit the kernel does not see", unix.SYS_IOCTL, []uint64{0, 0x50009401 | 1<<32}, deny},
		{"snapshot (BCH_IOCTL_SUBVOLUME_CREATE)", unix.SYS_IOCTL, []uint64{0, 0x4020bc10}, deny},
		{"directory that ignores case", unix.SYS_IOCTL, []uint64{0, unix.FS_IOC_SETFLAGS}, deny},
		{"directory without names", unix.SYS_IOCTL, []uint64{0, unix.FS_IOC_SET_ENCRYPTION_POLICY}, deny},
		{"its key", unix.SYS_IOCTL, []uint64{0, unix.FS_IOC_ADD_ENCRYPTION_KEY}, deny},
		{"locked directory", unix.SYS_IOCTL, []uint64{0, unix.FS_IOC_REMOVE_ENCRYPTION_KEY}, deny},
		{"flags of a file", unix.SYS_IOCTL, []uint64{0, unix.FS_IOC_GETFLAGS}, returnAllow},
		{"clone of a file", unix.SYS_IOCTL, []uint64{0, unix.FICLONE}, returnAllow},
		{"clone of a part", unix.SYS_IOCTL, []uint64{0, unix.FICLONERANGE}, returnAllow},
		{"same content", unix.SYS_IOCTL, []uint64{0, unix.FIDEDUPERANGE}, returnAllow},
		{"extents of a file (FS_IOC_FIEMAP)", unix.SYS_IOCTL, []uint64{0, 0xc020660b}, returnAllow},
		{"memory that no table shows", unix.SYS_MEMFD_SECRET, nil, missing},
		{"TIOCGWINSZ", unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, returnAllow},
		{"fork", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, returnAllow},
		{"thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, returnAllow},
		{"clone into a user namespace", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, deny},
		{"unshare the mounts", unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWNS}, deny},
		{"unshare the files", unix.SYS_UNSHARE, []uint64{unix.CLONE_FILES}, returnAllow},
		{"ask for the personality", unix.SYS_PERSONALITY, []uint64{0xffffffff}, returnAllow},
		{"i386 personality", unix.SYS_PERSONALITY, []uint64{8}, deny},
		{"TCP", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, returnAllow},
		{"UDP over IPv6", unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK, unix.IPPROTO_UDP}, returnAllow},
		{"ping", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, returnAllow},
		{"MPTCP", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, deny},
		{"raw", unix.SYS_SOCKET, []uint64{unix.AF_INET | 1<<32, unix.SOCK_RAW, unix.IPPROTO_ICMP}, deny},
		{"local", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, returnAllow},
		{"local packets", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}, returnAllow},
		{"local datagrams", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, deny},
		{"local datagrams by their other name", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_RAW | unix.SOCK_NONBLOCK, 0}, deny},
		{"pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, returnAllow},
		{"pair of datagrams", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, 0}, deny},
		{"pair of datagrams by their other name", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_RAW, 0}, deny},
		{"pair over vsock", unix.SYS_SOCKETPAIR, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, deny},
		{"pair over TIPC", unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC | 1<<32, unix.SOCK_SEQPACKET, 0}, deny},
		{"routes", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, returnAllow},
		{"audit", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, deny},
		{"vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, deny},
		{"alg", unix.SYS_SOCKET, []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, deny},
		{"packet", unix.SYS_SOCKET, []uint64{unix.AF_PACKET, unix.SOCK_RAW, 0}, deny},
	} {
		if got := run(nativeArch, c.nr, c.args...); got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.name, got, c.want)
		}
	}
}

func TestThereAreNoLocalSocketsThatNobodyJudges(t *testing.T) {
	t.Parallel()
	run := machine(t, false)
	for kind := range uint64(16) {
		if got := run(nativeArch, unix.SYS_SOCKET, unix.AF_UNIX, kind, 0); got != deny {
			t.Errorf("kind %d: got %#x", kind, got)
		}
	}
	if got := run(nativeArch, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0); got != returnAllow {
		t.Errorf("pair: got %#x", got)
	}
	if got := run(nativeArch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0); got != returnAllow {
		t.Errorf("TCP: got %#x", got)
	}
}

func FuzzFilterAlwaysAnswers(f *testing.F) {
	f.Add(uint32(nativeArch), uint32(unix.SYS_SOCKET), uint64(unix.AF_INET), uint64(1), uint64(6))
	run := machine(f, true)
	f.Fuzz(func(t *testing.T, arch, nr uint32, a, b, c uint64) {
		if got := run(arch, nr, a, b, c); !slices.Contains([]uint32{returnAllow, returnAsk, returnKill, deny, missing}, got) {
			t.Errorf("got %#x", got)
		}
	})
}

func TestNoProgramGetsTheRightsOfItsOwner(t *testing.T) {
	t.Parallel()
	run := machine(t, true)
	for nr, arg := range ofMode() {
		for mode, want := range map[uint64]uint32{
			0o644: returnAllow, 0o755: returnAllow, 0o1777: returnAllow, 0o2775: deny, 0o2000: deny, 0o2755 | 1<<32: deny,
			0o4755: deny, 0o4000: deny, 0o7777: deny, 0o4755 | 1<<32: deny, 0o755 | 1<<32: returnAllow,
		} {
			args := make([]uint64, 3)
			args[arg] = mode
			if got := run(nativeArch, nr, args...); got != want {
				t.Errorf("call %d with mode %#o: got %#x", nr, mode, got)
			}
		}
	}
}

// A mode counts only when the call makes a file: else the argument may be anything.
func TestNoFileIsMadeWithTheRightsOfItsOwner(t *testing.T) {
	t.Parallel()
	run := machine(t, true)
	for nr, arg := range opening() {
		for flags, made := range map[uint64]bool{
			0: false, unix.O_RDWR: false, unix.O_DIRECTORY: false, unix.O_PATH | unix.O_CLOEXEC: false,
			unix.O_CREAT | unix.O_WRONLY: true, unix.O_TMPFILE | unix.O_RDWR: true, unix.O_CREAT | 1<<32: true,
		} {
			for mode, odd := range map[uint64]bool{0o644: false, 0o755: false, 0o1777: false, 0o4755: true, 0o2755: true, 0o6000: true} {
				args, want := make([]uint64, 4), uint32(returnAllow)
				args[arg], args[arg+1] = flags, mode
				if made && odd {
					want = deny
				}
				if got := run(nativeArch, nr, args...); got != want {
					t.Errorf("call %d with flags %#x and mode %#o: got %#x, want %#x", nr, flags, mode, got, want)
				}
			}
		}
	}
}

func TestNoLeases(t *testing.T) {
	t.Parallel()
	run := machine(t, true)
	for command, want := range map[uint64]uint32{
		unix.F_SETLEASE: deny, unix.F_SETLEASE | 1<<32: deny, 1040: deny, 1040 | 1<<32: deny, // F_SETDELEG
		unix.F_GETLEASE: returnAllow, unix.F_SETFL: returnAllow, unix.F_SETLK: returnAllow, unix.F_DUPFD_CLOEXEC: returnAllow,
	} {
		if got := run(nativeArch, unix.SYS_FCNTL, 3, command, unix.F_RDLCK); got != want {
			t.Errorf("fcntl %d: got %#x", command, got)
		}
	}
}
