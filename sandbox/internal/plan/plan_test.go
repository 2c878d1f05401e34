//go:build linux && (amd64 || arm64)

package plan_test

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/internal/plan"
)

// execute adds the calls that make a shell run a script.
func execute(p *plan.Plan, script string) {
	p.Signals()
	p.Do("start the shell", unix.SYS_EXECVE, p.String("/bin/sh"), p.Strings([]string{"sh", "-c", script}), p.Strings([]string{"A=1"}))
}

// end waits for a process, and returns its exit status.
func end(t *testing.T, pid int) int {
	t.Helper()
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		t.Fatal(err)
	}
	return status.ExitStatus()
}

func TestAPlanEndsInAProgram(t *testing.T) {
	r, w, err := os.Pipe()
	must.Do(t, err)
	var p plan.Plan
	p.Do("dup3", unix.SYS_DUP3, w.Fd(), 1, 0)
	execute(&p, `echo "$A $(umask)"; exit 7`)
	pid, err := p.Start()
	must.Do(t, err)
	w.Close()
	out, err := io.ReadAll(r)
	must.Do(t, err)
	if got := end(t, pid); got != 7 || !strings.HasPrefix(string(out), "1 0") {
		t.Errorf("the program printed %q and returned %d", out, got)
	}
}

func TestAPlanNamesTheCallThatFailed(t *testing.T) {
	var p plan.Plan
	p.Do("close a descriptor", unix.SYS_CLOSE, 9999)
	execute(&p, "exit 0")
	_, err := p.Start()
	var failed *plan.Error
	if !errors.As(err, &failed) || failed.Name != "close a descriptor" || failed.Errno != syscall.EBADF {
		t.Errorf("the error is %v", err)
	}
	if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("a child is left: %v", err)
	}
	if _, err := new(plan.Plan).Start(); err == nil {
		t.Error("a plan without calls was started")
	}
}

// A process that restricts itself leaves its parent as it was, and a result is available to later calls.
func TestOnlyTheNewProcessIsChanged(t *testing.T) {
	before, err := os.Getwd()
	must.Do(t, err)
	var p plan.Plan
	pid, _ := p.Bytes(8)
	p.Do("getpid", unix.SYS_GETPID)
	p.Store(pid)
	p.Do("chdir", unix.SYS_CHDIR, p.String("/"))
	p.Do("no new privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	execute(&p, `[ "$(pwd)" = / ] && grep -q 'NoNewPrivs:.1' /proc/self/status`)
	child, err := p.Start()
	must.Do(t, err)
	if status := end(t, child); status != 0 {
		t.Errorf("the program returned %d", status)
	}
	if got := int(binary.NativeEndian.Uint64(pid)); got != child {
		t.Errorf("the child has pid %d, and stored %d", child, got)
	}
	now, err := os.Getwd()
	must.Do(t, err)
	status, err := os.ReadFile("/proc/self/status")
	must.Do(t, err)
	if now != before || !strings.Contains(string(status), "NoNewPrivs:\t0") {
		t.Errorf("the parent changed: %s, %s", now, status)
	}
}

// Signals that the parent handles, ignores or blocks have their default action in the program.
func TestAProgramHasTheDefaultSignals(t *testing.T) {
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, unix.SIGUSR1)
	defer signal.Stop(handled)
	signal.Ignore(unix.SIGUSR2)
	defer signal.Reset(unix.SIGUSR2)
	var p plan.Plan
	execute(&p, `while read -r name mask; do case $name in SigBlk:|SigIgn:) [ "$mask" = 0000000000000000 ] || exit 1; esac; done < /proc/$$/status; kill -USR2 $$; exit 2`)
	pid, err := p.Start()
	must.Do(t, err)
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || status.Signal() != unix.SIGUSR2 {
		t.Errorf("the program ended with %v, %v", status, err)
	}
}

// Plans run while other threads allocate, collect garbage and receive signals.
func TestPlansRunBesideGo(t *testing.T) {
	over := make(chan struct{})
	stopped := make(chan struct{})
	// Ends with the test.
	go func() {
		defer close(stopped)
		for {
			select {
			case <-over:
				return
			default:
				runtime.GC()
				_ = unix.Kill(os.Getpid(), unix.SIGURG)
			}
		}
	}()
	for range 100 {
		var p plan.Plan
		execute(&p, "exit 3")
		pid, err := p.Start()
		must.Do(t, err)
		if got := end(t, pid); got != 3 {
			t.Fatalf("the program returned %d", got)
		}
	}
	close(over)
	<-stopped
}

// FuzzPlan compares the assembly with a loop in Go, on calls whose results do not depend on when they are made.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Fuzz(func(t *testing.T, which []byte) {
		which = which[:min(len(which), 64)]
		var p plan.Plan
		results, _ := p.Bytes(8*len(which) + 8)
		failed := len(which)
		var want []uint64
		for i, b := range which {
			c := harmless[int(b)%len(harmless)]
			p.Do(string(rune('a'+i)), c.number, c.arguments...)
			p.Store(results[8*i:])
			got, _, e := unix.RawSyscall(c.number, at(c.arguments, 0), at(c.arguments, 1), at(c.arguments, 2))
			if e != 0 && failed == len(which) {
				failed = i
			}
			want = append(want, uint64(got))
		}
		p.Signals()
		p.Do("exit", unix.SYS_EXIT_GROUP, 0)
		pid, err := p.Start()
		var e *plan.Error
		switch {
		case failed == len(which) && err != nil:
			t.Fatal(err)
		case failed < len(which) && (!errors.As(err, &e) || e.Name != string(rune('a'+failed))):
			t.Fatalf("call %d was expected to fail: %v", failed, err)
		case err == nil:
			end(t, pid)
		}
		for i := range failed {
			if got := binary.NativeEndian.Uint64(results[8*i:]); got != want[i] {
				t.Errorf("call %d returned %d, and %d in Go", i, got, want[i])
			}
		}
	})
}

var harmless = []struct {
	number    uintptr
	arguments []uintptr
}{
	{unix.SYS_GETUID, nil},
	{unix.SYS_GETPGID, []uintptr{1}},
	{unix.SYS_CLOSE, []uintptr{9999}},
	{unix.SYS_FCNTL, []uintptr{0, unix.F_GETFD}},
	{unix.SYS_FCNTL, []uintptr{9999, unix.F_GETFD}},
	{unix.SYS_LSEEK, []uintptr{9999, 0, 0}},
	{unix.SYS_PRCTL, []uintptr{unix.PR_GET_DUMPABLE}},
	{unix.SYS_PRCTL, []uintptr{99999}},
	{unix.SYS_DUP3, []uintptr{0, 0, 0}},
	{unix.SYS_GETPRIORITY, []uintptr{0, 0}},
}

func at(list []uintptr, i int) uintptr {
	if i < len(list) {
		return list[i]
	}
	return 0
}
