package launch_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// again runs the calling test a second time, in a process of its own with a variable
// that says so. It reports whether this is that second run.
func again(t *testing.T) bool {
	t.Helper()
	if os.Getenv("TOOLD_TEST_AGAIN") != "" {
		return true
	}
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), "TOOLD_TEST_AGAIN=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	} else if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skipf("skipped inside: %s", out)
	}
	return false
}

// refuse makes the kernel know one system call no more, for this process and all that it
// starts, as the filter of a container that is older than the call does.
func refuse(t *testing.T, number uint32) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must.Do(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program))); e != 0 {
		t.Fatal(e)
	}
}

func TestBwrapIsTakenWhereTooldItselfCannotMakeTheView(t *testing.T) {
	if !again(t) {
		return
	}
	p := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: folder(t)}
	tierBwrap(t, p) // or skip
	refuse(t, unix.SYS_MOUNT_SETATTR)
	for _, launcher := range []string{"", "auto"} {
		p.Launcher = launcher
		q, report, err := launch.Choose(t.Context(), p, sandbox.TierA)
		if err != nil || report.Tier != "A-bwrap" || !strings.Contains(report.Degraded, "toold itself cannot: make /dev/null read-only") {
			t.Fatalf("%+v, %v", report, err)
		}
		if got, _ := runTier(t, q, "echo x >f; cat f; echo x 2>/dev/null >/etc/new || echo not there"); got != "x\nnot there\n" {
			t.Errorf("it printed %q", got)
		}
	}
	p.Launcher = "native"
	if _, report, err := launch.Choose(t.Context(), p, sandbox.TierB); !errors.Is(err, sandbox.ErrUnavailable) || report.Tier != "" {
		t.Errorf("%+v, %v", report, err)
	}
}

// living starts a call of which processes hold a pipe, and returns the pipe's other end
// when they do.
func living(t *testing.T, ws string, start func(script string)) *os.File {
	t.Helper()
	path := filepath.Join(ws, "life")
	must.Do(t, unix.Mkfifo(path, 0o600))
	start(`exec 9>life; (setsid sleep 601 </dev/null >/dev/null 2>&1 &); echo ready >&9; sleep 601`)
	life := must.Get(os.Open(path))(t)
	t.Cleanup(func() { life.Close() })
	if b := make([]byte, 6); !readFull(life, b) || string(b) != "ready\n" {
		t.Fatalf("read %q", b)
	}
	return life
}

func readFull(r io.Reader, b []byte) bool {
	_, err := io.ReadFull(r, b)
	return err == nil
}

// ends waits until no process has the pipe any more.
func ends(t *testing.T, life *os.File) {
	t.Helper()
	if b, err := io.ReadAll(life); err != nil || len(b) > 0 {
		t.Errorf("read %q, %v", b, err)
	}
}

func TestAKilledDaemonLeavesNothingInTierBwrap(t *testing.T) {
	if ws := os.Getenv("TOOLD_TEST_DAEMON"); ws != "" {
		p := tierBwrap(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws})
		<-begin(t, p, os.Getenv("TOOLD_TEST_SCRIPT")).Exited()
		return
	}
	t.Parallel()
	ws := folder(t)
	tierBwrap(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws}) // or skip
	daemon := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
	life := living(t, ws, func(script string) {
		daemon.Env = append(os.Environ(), "TOOLD_TEST_DAEMON="+ws, "TOOLD_TEST_SCRIPT="+script)
		must.Do(t, daemon.Start())
	})
	must.Do(t, daemon.Process.Kill())
	_ = daemon.Wait() // its end is our kill
	ends(t, life)
}

// To kill bwrap alone would leave the helper and the call behind.
func TestACallOutlivesItsBwrapAndEnds(t *testing.T) {
	t.Parallel()
	ws := folder(t)
	p := tierBwrap(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws})
	var call begun
	life := living(t, ws, func(script string) { call = begin(t, p, script) })
	stat := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", call.PID())))(t)
	var state string
	var parent int
	if _, err := fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent); err != nil {
		t.Fatalf("%v: %s", err, stat)
	}
	must.Do(t, unix.Kill(parent, unix.SIGKILL))
	if left := call.End(); len(left) < 2 {
		t.Errorf("left: %+v", left)
	}
	ends(t, life)
	if call.Stuck() {
		t.Error("it is stuck")
	}
}

// Not parallel: the descriptors that the failed start has closed must be free for the test.
func TestWhatAReservedCallClosedIsNotClosedAgain(t *testing.T) {
	p := tierBwrap(t, sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: folder(t)})
	streams := launch.NewStreams(t)
	call := must.Get(launch.Start(t.Context(), launch.Command{
		Argv: []string{"/none"}, Dir: p.Workspace, Reserve: true,
		Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out, Profile: p,
	}))(t)
	if err := call.Release(t.Context()); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("it was released: %v", err)
	}
	var held []int
	for range 30 {
		fd := must.Get(unix.Dup(int(streams.Null.Fd())))(t)
		held = append(held, fd)
	}
	call.End()
	for _, fd := range held {
		if err := unix.Close(fd); err != nil {
			t.Errorf("descriptor %d was closed by the call: %v", fd, err)
		}
	}
}
