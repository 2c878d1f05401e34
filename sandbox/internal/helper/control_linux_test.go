package helper

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
)

// TestAReportThatCannotBeSentEndsTheConnection: the daemon would wait for it. This binary plays
// the helper, too.
func TestAReportThatCannotBeSentEndsTheConnection(t *testing.T) {
	if os.Getenv("PLAY_HELPER") != "" {
		send(Event{Kind: EventFailed, Text: strings.Repeat("x", 64<<20)})
		send(Event{Kind: EventAlone})
		return
	}
	t.Parallel()
	ends := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(ends[0])
	theirs := os.NewFile(uintptr(ends[1]), "control")
	helper := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestAReportThatCannotBeSentEndsTheConnection$")
	helper.Env, helper.Stderr = append(os.Environ(), "PLAY_HELPER=1"), os.Stderr
	helper.ExtraFiles = []*os.File{theirs} // descriptor 3
	if out, err := helper.Output(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	theirs.Close()
	if n, err := unix.Read(ends[0], make([]byte, 1<<10)); n != 0 || err != nil {
		t.Errorf("the daemon has got %d bytes, %v, want the end of the connection", n, err)
	}
}
