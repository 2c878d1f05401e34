package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

// alone runs script in dir under nothing but what spec says, and returns what it
// printed.
func alone(t *testing.T, dir, script string, spec helper.Spec) string {
	t.Helper()
	streams := NewStreams(t)
	p := &Process{
		exited: make(chan struct{}), alone: make(chan struct{}), gone: make(chan struct{}),
		answers: make(chan helper.Event, 1),
	}
	spec.Dir, spec.Argv, spec.Env = dir, []string{"/bin/bash", "-c", script}, []string{"PATH=" + os.Getenv("PATH")}
	must.Do(t, p.launch(Command{Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out}, spec, nil))
	must.Do(t, p.hear(t.Context()))
	<-p.Exited()
	p.End()
	return streams.Printed(t)
}

func TestLandlockHoldsWithoutTheView(t *testing.T) {
	t.Parallel()
	inside, outside := t.TempDir(), t.TempDir()
	got := alone(t, inside, `echo in >f && cat f; (echo out >`+outside+`/f) 2>&1 | grep -o 'Permission denied'
ln f `+outside+`/l 2>/dev/null || echo no link; kill -0 $PPID 2>/dev/null || echo no signal`,
		helper.Spec{Landlock: true, View: helper.View{Roots: []helper.Root{{Path: inside, Writable: true}, {Path: "/dev/null", Writable: true}}}})
	want := "in\nPermission denied\nno link\nno signal\n"
	must.Match(t, want, got)
}

func TestFilterHoldsWithoutTheView(t *testing.T) {
	t.Parallel()
	got := alone(t, "/", `grep Seccomp: /proc/self/status; unshare -U true 2>&1 | grep -o 'not permitted'`, helper.Spec{Seccomp: true})
	must.Match(t, "Seccomp:\t2\nnot permitted\n", got)
}

// What a control group counts need not be guessed.
func TestSharedMemoryOutOfSightIsGuessedOnlyWithoutAControlGroup(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	const script = `python3 -c '
import mmap, time
m = mmap.mmap(-1, 100 << 20)
m.write(bytes(100 << 20))
time.sleep(%d)'; echo end`
	for bounded, want := range map[bool]string{false: "", true: "end\n"} {
		hold := map[bool]int{false: 60, true: 1}[bounded]
		if got := alone(t, "/", fmt.Sprintf(script, hold), helper.Spec{MemoryBytes: 80 << 20, Bounded: bounded}); got != want {
			t.Errorf("bounded %v: it printed %q", bounded, got)
		}
	}
}

func TestSegmentsOfTheMachineAreNotTheCalls(t *testing.T) {
	t.Parallel()
	const size = 100 << 20
	id := must.Get(unix.SysvShmGet(unix.IPC_PRIVATE, size, unix.IPC_CREAT|0o600))(t)
	memory, err := unix.SysvShmAttach(id, 0, 0)
	_, bad := unix.SysvShmCtl(id, unix.IPC_RMID, nil) // at its last use
	must.Do(t, errors.Join(err, bad))
	t.Cleanup(func() { must.Do(t, unix.SysvShmDetach(memory)) })
	for at := 0; at < size; at += os.Getpagesize() {
		memory[at] = 1
	}
	must.Match(t, "end\n", alone(t, "/", "sleep 1; echo end", helper.Spec{MemoryBytes: size / 2}))
}

func TestMarkerAloneDoesNothing(t *testing.T) {
	t.Parallel()
	for name, fd3 := range map[string]*os.File{"no descriptor": nil, "a file": os.Stdin} {
		c := exec.CommandContext(t.Context(), "/proc/self/exe", helper.Marker)
		if fd3 != nil {
			c.ExtraFiles = []*os.File{fd3}
		}
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 125 || !strings.Contains(string(out), "toold itself") {
			t.Errorf("%s: %v, %q", name, err, out)
		}
	}
}

func TestFailureNamesStageAndNextStep(t *testing.T) {
	t.Parallel()
	err := unavailable("clone", &os.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: syscall.EPERM})
	if !errors.Is(err, sandbox.ErrUnavailable) || !errors.Is(err, syscall.EPERM) || err.Advice == "" {
		t.Errorf("got %#v", err)
	}
	if !strings.HasPrefix(err.Error(), "sandbox unavailable: clone: operation not permitted; ") {
		t.Errorf("got %q", err)
	}
}

func TestOnlyARefusalIsAnsweredWithTheContainersSettings(t *testing.T) {
	t.Parallel()
	if err := unavailable("make a place for /w", syscall.ENOENT); !strings.Contains(err.Advice, "toold doctor") || strings.Contains(err.Advice, "security-opt") {
		t.Errorf("got %q", err.Advice)
	}
}

func TestEachShortageIsAnsweredWithWhatIsShort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stage, want string
		no          syscall.Errno
	}{
		{"clone", "ulimit -u", syscall.EAGAIN},
		{"start /bin/bash", "sandbox.limits.processes", syscall.EAGAIN},
		{"make a control group", "cgroup.max.descendants", syscall.EAGAIN},
		{"protect /w/.envrc", "make the call again", syscall.EAGAIN},
		{"instruct the helper", "toold doctor", syscall.EAGAIN},
		{"clone", "_namespaces", syscall.ENOSPC},
		{"make a control group", "control groups", syscall.ENOSPC},
		{"make a place for /tmp/w", "sandbox.limits.tmp_bytes", syscall.ENOSPC},
		{"make an overlay over /c", "state directory", syscall.ENOSPC},
		{"protect /w/.envrc", "fs.mount-max", syscall.ENOSPC},
		{"mount /dev/pts", "fs.mount-max", syscall.ENOSPC},
		{"hide /w/.envrc", "fs.mount-max", syscall.ENOSPC},
		{"copy the view", "fs.mount-max", syscall.ENOSPC},
		{"bring up the loopback", "toold doctor", syscall.ENOSPC},
	} {
		err := unavailable(c.stage, c.no)
		if !strings.Contains(err.Advice, c.want) {
			t.Errorf("%s, %v: got %q", c.stage, c.no, err.Advice)
		}
		if names := strings.Contains(err.Advice, "tmp_bytes"); names != (c.want == "sandbox.limits.tmp_bytes") {
			t.Errorf("%s, %v: got %q", c.stage, c.no, err.Advice)
		}
	}
}

func TestASandboxThatIsNotMadeInTimeBlamesNobody(t *testing.T) {
	t.Parallel()
	text := unavailable(stageHear, errSilent).Error()
	if !strings.Contains(text, "not made within a minute, and its helper did not say why") || !strings.Contains(text, "toold doctor") {
		t.Errorf("got %q", text)
	}
}

func TestProbeTriesEveryLayer(t *testing.T) {
	t.Parallel()
	got := Probe(t.Context())
	_, whole := Try(t.Context(), sandbox.Profile{Mode: sandbox.ReadOnly})
	for _, f := range got {
		if !f.OK && whole == nil {
			t.Errorf("a layer fails where a sandbox has all of them: %+v", f)
		}
		t.Logf("%-50s %v %s %s %s", f.Name, f.OK, f.Detail, f.Why, f.Fix)
		if f.OK == (f.Why != "") || f.Why != "" && f.Fix == "" {
			t.Errorf("a layer that fails must say why and what fixes it, got %+v", f)
		}
	}
	if len(got) != 5 {
		t.Errorf("got %+v", got)
	}
}

func TestProbeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Probe(ctx); !slices.ContainsFunc(got, func(f Feature) bool { return !f.OK }) {
		t.Errorf("an ended probe found %+v", got)
	}
}
