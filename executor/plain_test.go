//go:build unix

package executor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
	came chan struct{}
}

func newHeard() *heard { return &heard{came: make(chan struct{}, 100)} }

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case h.came <- struct{}{}:
	default:
	}
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// runPlainly runs a script as on a system without a helper.
func runPlainly(t *testing.T, ctx context.Context, c Command) (Exit, *heard, *heard) {
	t.Helper()
	shell := must.Get(plainShell())(t)
	stdout, stderr := newHeard(), newHeard()
	if c.Stdout == nil {
		c.Stdout = stdout
	}
	c.Terminal, c.Dir, c.Env, c.Stderr = Off, t.TempDir(), []string{"PATH=/usr/bin:/bin"}, stderr
	exit := must.Get(runPlain(ctx, c, shell, nil, sandbox.Report{Tier: "none"}))(t)
	return exit, stdout, stderr
}

func TestAPlainCommandGivesOutputAndExit(t *testing.T) {
	t.Parallel()
	exit, stdout, stderr := runPlainly(t, t.Context(), Command{Script: "printf out; printf err >&2; exit 3"})
	if stdout.String() != "out" || stderr.String() != "err" || exit.Code != 3 || exit.Reason != Exited {
		t.Errorf("got %q, %q, %+v", stdout, stderr, exit)
	}
	exit, _, _ = runPlainly(t, t.Context(), Command{Script: "kill -TERM $$"})
	if exit.Code != 143 || exit.Signal != "SIGTERM" {
		t.Errorf("a command that a signal ended: %+v", exit)
	}
}

func TestAPlainCommandsLeftoversAreKilledAndTold(t *testing.T) {
	t.Parallel()
	sleep := fmt.Sprintf("sleep 4711.%d", os.Getpid()) // others may run this test too
	exit, stdout, _ := runPlainly(t, t.Context(), Command{Script: sleep + " & (" + sleep + " &); echo done"})
	if stdout.String() != "done\n" || exit.Reason != Exited || len(exit.Leftovers) != 2 || !strings.Contains(exit.Leftovers[0].Command, sleep) {
		t.Errorf("got %q, %+v", stdout, exit)
	}
	survives(t, sleep)
}

// TestAProcessThatGotTheNumberOfAnotherIsLeftAlone: of a member that ended, and of the shell.
func TestAProcessThatGotTheNumberOfAnotherIsLeftAlone(t *testing.T) {
	t.Parallel()
	other := exec.CommandContext(t.Context(), "sleep", "1000")
	other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must.Do(t, other.Start())
	pid := other.Process.Pid
	for name, j := range map[string]*job{
		"of a member":  {leader: 1 << 30, reaped: true, seen: map[int]time.Time{pid: time.Now().Add(-24 * time.Hour)}},
		"of the shell": {leader: pid, reaped: true},
	} {
		if left := j.end(); len(left) != 0 {
			t.Errorf("a process with the number %s: %+v", name, left)
		}
	}
	if err := other.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := other.Wait(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("it has ended otherwise: %v", err)
	}
}

func TestAPlainCommandHearsOutItsChildren(t *testing.T) {
	t.Parallel()
	_, stdout, _ := runPlainly(t, t.Context(), Command{Script: "exec > >(cat); echo one; echo two"})
	if stdout.String() != "one\ntwo\n" {
		t.Errorf("got %q", stdout)
	}
}

func TestAPlainCommandIsStoppedWithItsTree(t *testing.T) {
	t.Parallel()
	sleep := fmt.Sprintf("sleep 4712.%d", os.Getpid())
	c := Command{
		Script: "trap '' TERM; " + sleep + " & setsid " + sleep + " & echo started; kill -STOP $$; wait",
		Grace:  10 * time.Millisecond,
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := newHeard()
	c.Stdout = out
	// Ends with the first output.
	go func() {
		<-out.came
		cancel()
	}()
	if exit, _, _ := runPlainly(t, ctx, c); exit.Reason != Stopped || exit.Signal != "SIGKILL" {
		t.Errorf("cancel: %+v", exit)
	}
	c.Stdout = nil
	for c.Timeout = time.Second; c.Timeout < 5*time.Minute; c.Timeout *= 2 {
		exit, stdout, _ := runPlainly(t, t.Context(), c)
		if stdout.String() == "" && exit.Reason == TimedOut {
			continue // its time was over before it was ready
		}
		if exit.Reason != TimedOut || exit.Signal != "SIGKILL" {
			t.Errorf("timeout: %+v", exit)
		}
		break
	}
	survives(t, sleep)
}

func TestAPlainCommandTakesInputAndSignals(t *testing.T) {
	t.Parallel()
	input := make(chan Input, 4)
	input <- Input{Data: []byte("hello\n")}
	input <- Input{EOF: true}
	_, stdout, _ := runPlainly(t, t.Context(), Command{Script: "cat", Stdin: true, Input: input})
	if stdout.String() != "hello\n" {
		t.Errorf("got %q", stdout)
	}
	signals, out := make(chan Input, 2), newHeard()
	signals <- Input{Data: bytes.Repeat([]byte("nobody reads this "), 1<<14)}
	// Ends with the first output.
	go func() {
		<-out.came
		signals <- Input{Signal: "usr1"}
	}()
	exit, _, _ := runPlainly(t, t.Context(), Command{
		Script: "trap 'exit 7' USR1; echo ready; while :; do sleep 0.01; done", Stdin: true, Input: signals, Stdout: out,
	})
	if exit.Code != 7 {
		t.Errorf("a command whose input nobody reads got no signal: %+v", exit)
	}
}

func TestAPlainCommandHasNoTerminal(t *testing.T) {
	t.Parallel()
	_, err := runPlain(t.Context(), Command{Script: "true", Dir: "/", Terminal: Split}, "/bin/bash", nil, sandbox.Report{})
	if err == nil || !strings.Contains(err.Error(), `"terminal": "off"`) {
		t.Errorf("got %v", err)
	}
}

func survives(t *testing.T, command string) {
	t.Helper()
	for _, m := range processes() {
		if m.command == command {
			t.Errorf("%+v survived", m)
		}
	}
}
