package doctor

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// A directory that exists is not made writable by mkdir where its disk is full or read-only.
func TestTheFixOfAStateDirectoryIsForItsFault(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		syscall.ENOSPC: "make room: du -sh /s/*", syscall.EDQUOT: "make room: du -sh /s/*",
		syscall.EROFS: "make its file system writable: findmnt -T /s", syscall.EACCES: "make it yours: mkdir -p -m 700 /s",
	} {
		if got := unwritable(fmt.Errorf("write /s/x: %w", err), "/s"); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
