//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

func TestACallAmongOtherProcessesChangesNoneButItself(t *testing.T) {
	t.Parallel()
	changesNone(t, ^uint32(0))
}

// Where the numbers of processes are the call's own, the first ones are the helper's.
func TestACallChangesNothingOfItsHelper(t *testing.T) {
	t.Parallel()
	changesNone(t, 20)
}

// changesNone plays the filter: no process but the caller's and those beyond last may
// be changed.
func changesNone(t *testing.T, last uint32) {
	t.Helper()
	vm := must.Get(bpf.NewVM(othersFilter(last)))(t)
	run := func(nr uint32, args ...uint32) uint32 {
		var b [64]byte
		binary.BigEndian.PutUint32(b[offsetNumber:], nr)
		for i, a := range args {
			binary.BigEndian.PutUint32(b[offsetArgs+8*i:], a)
		}
		got := must.Get(vm.Run(b[:]))(t)
		return uint32(got)
	}
	for which := range uint32(5) {
		for _, who := range []uint32{0, 1, 20, 21, 4711, 0xffffffff} {
			for nr, ofUser := range map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_USER, unix.SYS_IOPRIO_SET: ioprioUser} {
				want := uint32(returnAllow)
				if which == ofUser || who != 0 && who <= last {
					want = deny
				}
				if got := run(nr, which, who); got != want {
					t.Errorf("call %d (%d, %d): %#x", nr, which, who, got)
				}
			}
		}
	}
	for nr := range uint32(600) {
		if nr == unix.SYS_SETPRIORITY || nr == unix.SYS_IOPRIO_SET {
			continue
		}
		arg, changes := ofProcess()[nr]
		for _, pid := range []uint32{0, 1, 20, 21, 4711, 0xffffffff} {
			args := make([]uint32, arg+1)
			args[arg] = pid
			want := uint32(returnAllow)
			if changes && pid != 0 && pid <= last {
				want = deny
			}
			if got := run(nr, args...); got != want {
				t.Errorf("call %d of process %d: %#x", nr, pid, got)
			}
		}
	}
}
