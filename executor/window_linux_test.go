package executor

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

// tracer stops the helper of a held command before it reports that the shell has started. Its
// functions are called from one thread.
type tracer struct{ helper int }

func trace(t *testing.T, h *Reservation) *tracer {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	tr := &tracer{h.process.PID()}
	if err := unix.PtraceSeize(tr.helper); err != nil {
		t.Skipf("this machine lets no process trace another: %v", err)
	}
	must.Do(t, unix.PtraceInterrupt(tr.helper))
	tr.next(t)
	must.Do(t, unix.PtraceSetOptions(tr.helper, unix.PTRACE_O_TRACEVFORKDONE))
	tr.resume(t, 0)
	return tr
}

func (tr *tracer) next(t *testing.T) unix.WaitStatus {
	t.Helper()
	for {
		var ws unix.WaitStatus
		_, err := unix.Wait4(tr.helper, &ws, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || !ws.Stopped():
			t.Fatalf("the helper did not stop: %v, %#x", err, ws)
		}
		return ws
	}
}

func (tr *tracer) resume(t *testing.T, signal int) {
	t.Helper()
	must.Do(t, unix.PtraceCont(tr.helper, signal))
}

func (tr *tracer) started(t *testing.T) {
	t.Helper()
	for {
		ws := tr.next(t)
		if ws.TrapCause() == unix.PTRACE_EVENT_VFORK_DONE {
			return
		}
		signal := int(ws.StopSignal())
		if signal == int(unix.SIGTRAP) {
			signal = 0 // a stop of the tracing itself
		}
		tr.resume(t, signal)
	}
}

func (tr *tracer) letGo(t *testing.T) {
	t.Helper()
	if err := unix.PtraceDetach(tr.helper); err != nil {
		t.Errorf("the helper is gone: %v", err)
	}
}

type outcome struct {
	exit Exit
	err  error
}

// inWindow runs a held command up to the moment in which its script has made the file
// "ran" and the helper has not said so.
func inWindow(t *testing.T, ctx context.Context, c Command) (*tracer, *Reservation, <-chan outcome) {
	t.Helper()
	var none *Pool // whose helper starts the shell from its first thread, which is traced
	h := none.Reserve(c)
	if h.err != nil {
		t.Fatal(h.err)
	}
	tr := trace(t, h)
	over := make(chan outcome, 1)
	// Ends with the command; the caller waits.
	go func() {
		e, err := h.Run(ctx, c)
		over <- outcome{e, err}
	}()
	tr.started(t)
	for !ran(c) {
		runtime.Gosched()
	}
	return tr, h, over
}

// A call that was cancelled when it had just begun has run: what it printed counts.
func TestACancelBeforeTheHelpersFirstWordIsThatOfARunningCommand(t *testing.T) {
	for _, mode := range []Terminal{Split, Off} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := inWorkspace(t, mode, sandbox.WorkspaceWrite)
		c.Script = "trap 'echo stopped; exit 7' TERM; echo begun; echo ran >ran; while :; do :; done"
		var out bytes.Buffer
		started := false
		c.Stdout, c.Started = &out, func(Started) { started = true }
		tr, _, over := inWindow(t, ctx, c)
		cancel()
		tr.letGo(t)
		got := <-over
		if got.err != nil || got.exit.Reason != Stopped || got.exit.Code != 7 || out.String() != "begun\nstopped\n" || !started {
			t.Errorf("%s: got %+v, %v, printed %q, start reported: %t", mode, got.exit, got.err, out.String(), started)
		}
	}
}

// Nothing says whether a command has run whose helper ends before its first word.
func TestACommandWhoseHelperEndsBeforeItsFirstWordMayHaveRun(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := inWorkspace(t, Off, sandbox.WorkspaceWrite)
		c.Script = "echo begun; echo ran >ran; sleep 1000"
		var out bytes.Buffer
		started := false
		c.Stdout, c.Started = &out, func(Started) { started = true }
		tr, _, over := inWindow(t, ctx, c)
		if cancelled {
			cancel()
		}
		must.Do(t, syscall.Kill(tr.helper, syscall.SIGKILL))
		got := <-over
		if got.err != nil || !got.exit.Lost || out.String() != "begun\n" || !started {
			t.Errorf("cancelled: %t: got %+v, %v, printed %q, start reported: %t", cancelled, got.exit, got.err, out.String(), started)
		}
	}
}

// A command that is cancelled while its sandbox is made does not run.
func TestACancelBeforeTheCommandMayStartLeavesNothing(t *testing.T) {
	c := inWorkspace(t, Off, sandbox.WorkspaceWrite)
	c.Script = "echo ran >ran"
	var none *Pool // whose helper starts the shell from its first thread, which is traced
	h := none.Reserve(c)
	if h.err != nil {
		t.Fatal(h.err)
	}
	must.Do(t, syscall.Kill(h.process.PID(), syscall.SIGSTOP))
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan outcome, 1)
	// Ends with the command.
	go func() {
		e, err := h.Run(ctx, c)
		over <- outcome{e, err}
	}()
	cancel()
	if got := <-over; got.err != nil || got.exit.Reason != Stopped || got.exit.Lost || ran(c) {
		t.Errorf("got %+v, %v, it ran: %t", got.exit, got.err, ran(c))
	}
}

// The helper continues a shell that the terminal has stopped, not one that has stopped
// itself.
func TestAShellThatStopsItselfAtOnceStaysStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := inWorkspace(t, Split, sandbox.WorkspaceWrite)
	c.Script = "echo ran >ran; kill -STOP $$; echo on >on"
	begun := make(chan struct{})
	c.Started = func(Started) { close(begun) }
	tr, _, over := inWindow(t, ctx, c)
	shell := childOf(t, tr.helper)
	for state(shell) != "T" {
		runtime.Gosched()
	}
	tr.letGo(t)
	<-begun
	if s := state(shell); s != "T" {
		t.Errorf("the shell is in state %q", s)
	}
	cancel()
	<-over
}

func childOf(t *testing.T, pid int) string {
	t.Helper()
	all := must.Get(os.ReadDir("/proc"))(t)
	for _, e := range all {
		if f := stat(e.Name()); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			return e.Name()
		}
	}
	t.Fatal("the helper has no child")
	return ""
}

func state(pid string) string {
	if f := stat(pid); len(f) > 0 {
		return f[0]
	}
	return ""
}

func stat(pid string) []string {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	_, rest, found := strings.Cut(string(b), ") ")
	if err != nil || !found {
		return nil
	}
	return strings.Fields(rest)
}
