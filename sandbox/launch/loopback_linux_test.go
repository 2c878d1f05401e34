package launch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// sockets counts the open sockets of the tests.
func sockets(t *testing.T) (n int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// It counts descriptors, so that no other test may run beside it.
func TestACommandTakesNoMoreSocketsThanItBorrows(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close what was forgotten
	const most = 16
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := sandbox.Profile{Mode: sandbox.ReadOnly, Workspace: ws}
	var all launch.Loopback
	for i := range most + 3 {
		lender := begin(t, p, "exec sleep 6000")
		defer lender.End()
		lender.Lend(&all, fmt.Sprint("background-", i))
	}
	streams := launch.NewStreams(t)
	command := launch.Command{
		Argv: []string{"/bin/bash", "-c", "exit 0"}, Dir: ws, Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out, Profile: p, Reserve: true,
	}
	call, err := launch.Start(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	before := sockets(t)
	call.Borrow(&all)
	if n := sockets(t) - before; n != most {
		t.Errorf("%d sockets were taken", n)
	}
	if err := call.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := sockets(t) - before; n > 0 {
		t.Errorf("%d are left", n)
	}
	<-call.Exited()
	call.End()
	before = sockets(t)
	command.Argv[2] = "exit 1"
	if call, err = launch.Start(t.Context(), command); err != nil {
		t.Fatal(err)
	}
	call.Borrow(&all)
	call.End() // it was never released
	if n := sockets(t) - before; n > 0 {
		t.Errorf("%d are left of a command that never ran", n)
	}
}
