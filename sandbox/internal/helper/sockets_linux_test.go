//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

func TestWithoutNamespacesThereIsNoSocketAndNoSharedMemory(t *testing.T) {
	t.Parallel()
	for _, offline := range []bool{true, false} {
		vm := must.Get(bpf.NewVM(socketsFilter(offline)))(t)
		for nr := range uint32(tables) {
			for family := range uint32(50) {
				var b [64]byte
				binary.BigEndian.PutUint32(b[offsetNumber:], nr)
				binary.BigEndian.PutUint32(b[offsetArgs:], family)
				want := uint32(returnAllow)
				inet := family == unix.AF_INET || family == unix.AF_INET6
				if slices.Contains(append(between(), watching()...), nr) || nr == unix.SYS_SOCKET && (offline || !inet) {
					want = deny
				}
				if got, err := vm.Run(b[:]); err != nil || uint32(got) != want {
					t.Fatalf("call %d of family %d, offline %t: %#x, %v", nr, family, offline, got, err)
				}
			}
		}
	}
}
