//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	deny    = returnErrno | uint32(unix.EPERM)
	missing = returnErrno | uint32(unix.ENOSYS)
)

// machine runs the filter as the kernel would. x/net/bpf loads big-endian words,
// so each is written that way at its little-endian place.
func machine(t testing.TB) func(arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(filter())
	if err != nil {
		t.Fatal(err)
	}
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
			t.Fatal(err)
		}
		return uint32(got)
	}
}

func TestEveryCallOfEveryTableHasItsAnswer(t *testing.T) {
	t.Parallel()
	run := machine(t)
	conditional := []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE, unix.SYS_IOCTL, unix.SYS_PERSONALITY, unix.SYS_SOCKET}
	no := append(refused(), refusedHere()...)
	for nr := range uint32(1024) {
		want := uint32(returnAllow)
		switch {
		case slices.Contains(no, nr):
			want = deny
		case slices.Contains(absent(), nr):
			want = missing
		case slices.Contains(conditional, nr):
			continue
		}
		if got := run(nativeArch, nr); got != want {
			t.Errorf("call %d: got %#x, want %#x", nr, got, want)
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

func TestArgumentsDecide(t *testing.T) {
	t.Parallel()
	run := machine(t)
	for _, c := range []struct {
		name string
		nr   uint32
		args []uint64
		want uint32
	}{
		{"TIOCSTI", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, deny},
		{"TIOCSTI with a bit the kernel does not see", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI | 1<<32}, deny},
		{"TIOCLINUX", unix.SYS_IOCTL, []uint64{0, unix.TIOCLINUX}, deny},
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
		{"local", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, returnAllow},
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

func FuzzFilterAlwaysAnswers(f *testing.F) {
	f.Add(uint32(nativeArch), uint32(unix.SYS_SOCKET), uint64(unix.AF_INET), uint64(1), uint64(6))
	run := machine(f)
	f.Fuzz(func(t *testing.T, arch, nr uint32, a, b, c uint64) {
		if got := run(arch, nr, a, b, c); !slices.Contains([]uint32{returnAllow, returnKill, deny, missing}, got) {
			t.Errorf("got %#x", got)
		}
	})
}
