package executor_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/sandbox"
)

// A frozen process does not even take a KILL before it is thawed, as one that
// waits for a device that does not answer.
func TestAProcessThatCannotBeKilledDoesNotHoldUpRun(t *testing.T) {
	t.Parallel()
	const freezers = "/sys/fs/cgroup/freezer"
	group := filepath.Join(freezers, fmt.Sprintf("toold-test-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o700); err != nil {
		t.Skipf("freezing needs root and a freezer of cgroup v1: %v", err)
	}
	state := func(s string) {
		if err := os.WriteFile(filepath.Join(group, "freezer.state"), []byte(s), 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { os.Remove(group) })
	m := mark(t)
	c := in(t, executor.Split, "echo ready; sleep "+m+"; :")
	c.Grace = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := listenFor("ready")
	c.Stdout = out
	var freezer sync.WaitGroup
	// Ends when the command has come so far that all of it can be frozen.
	freezer.Go(func() {
		<-out.come
		for running(t, m) < 2 { // the shell and its sleep
		}
		freeze(t, group, m)
		state("FROZEN")
		cancel()
	})
	e, err := executor.Run(ctx, c)
	if err != nil || !e.Stuck || e.Reason != executor.Stopped {
		t.Errorf("got %+v, %v", e, err)
	}
	freezer.Wait()
	state("THAWED")
	for running(t, m) > 0 { // the KILL waits for them
	}
}

func freeze(t *testing.T, group, mark string) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Error(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark)) {
			if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strings.Split(f, "/")[2]), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAStoppedTreeIsEnded(t *testing.T) {
	t.Parallel()
	// It stops them again when the shell is given the terminal only then, which continues it.
	const script = `trap 'echo bye; exit 9' TERM
sleep MARK & s=$!
(until kill -STOP $s $$; [ "$(grep -h ^State /proc/$$/status /proc/$s/status | grep -c T)" = 2 ]; do :; done; echo ready) &
wait`
	m := mark(t)
	for c := range everywhere(t, strings.ReplaceAll(script, "MARK", m)) {
		got, err := stopWhenReady(t, c)
		if diff := cmp.Diff(result{Out: "ready\nbye\n", Code: 9, Reason: executor.Stopped}, got); diff != "" || err != nil {
			t.Errorf("%s %s: %v %s", c.Terminal, c.Sandbox.Mode, err, diff)
		}
		if n := running(t, m); n != 0 {
			t.Errorf("%s %s: %d processes survived", c.Terminal, c.Sandbox.Mode, n)
		}
	}
}

// It stops itself when it has been asked to end: nobody but Run can wake it.
func TestAProcessThatStopsWhileItEndsIsWoken(t *testing.T) {
	t.Parallel()
	for c := range everywhere(t, `trap 'kill -STOP $$; echo bye; exit 9' TERM; echo ready; while :; do :; done`) {
		got, err := stopWhenReady(t, c)
		if diff := cmp.Diff(result{Out: "ready\nbye\n", Code: 9, Reason: executor.Stopped}, got); diff != "" || err != nil {
			t.Errorf("%s %s: %v %s", c.Terminal, c.Sandbox.Mode, err, diff)
		}
	}
}

// A machine that stands still for a while finds both when it goes on.
func TestACancelIsToldWhenTheTimeIsOverToo(t *testing.T) {
	t.Parallel()
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		c := in(t, executor.Off, `sleep 1000`)
		c.Timeout = time.Nanosecond
		c.Started = func(executor.Started) { cancel() }
		if e, err := executor.Run(ctx, c); err != nil || e.Reason != executor.Stopped {
			t.Errorf("got %+v, %v", e, err)
		}
	}
}

// The end of the context races with the end of the command: the exit reports one of them.
func TestACancelAtTheEndIsOneOrTheOther(t *testing.T) {
	t.Parallel()
	for _, profile := range []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.FullAccess} {
		for i := range 30 {
			c := in(t, executor.Off, `echo ready; exit 3`)
			c.Sandbox.Mode = profile
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
			e, err := executor.Run(ctx, c)
			cancel()
			whole := e.Reason == executor.Exited && e.Code == 3 ||
				e.Reason == executor.Stopped && (e.Signal == "SIGTERM" || e.Code == 3)
			if err != nil || !whole {
				t.Errorf("%s: got %+v, %v", profile, e, err)
			}
		}
	}
}
