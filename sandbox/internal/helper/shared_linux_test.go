//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
)

func TestACallAmongOtherProcessesChangesNoneButItself(t *testing.T) {
	t.Parallel()
	vm, err := bpf.NewVM(othersFilter())
	if err != nil {
		t.Fatal(err)
	}
	for nr := range uint32(600) {
		arg, changes := ofProcess()[nr]
		for _, pid := range []uint32{0, 1, 4711, 0xffffffff} {
			var b [64]byte
			binary.BigEndian.PutUint32(b[offsetNumber:], nr)
			binary.BigEndian.PutUint32(b[offsetArgs+8*arg:], pid)
			want := uint32(returnAllow)
			if changes && pid != 0 {
				want = deny
			}
			if got, err := vm.Run(b[:]); err != nil || uint32(got) != want {
				t.Errorf("call %d of process %d: %#x, %v", nr, pid, got, err)
			}
		}
	}
}
