package executor_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

type holdings struct{ Descriptors, Children int }

func holds(t *testing.T) (h holdings) {
	t.Helper()
	fds := must.Get(os.ReadDir("/proc/self/fd"))(t)
	h.Descriptors = len(fds)
	lists := must.Get(filepath.Glob("/proc/self/task/*/children"))(t)
	for _, l := range lists {
		b, _ := os.ReadFile(l) // a thread may have ended
		h.Children += len(strings.Fields(string(b)))
	}
	return h
}

// Not parallel: it counts what the whole process holds. Goroutines are counted
// by TestMain.
func TestRunsLeaveNothingInTheDaemon(t *testing.T) {
	var commands []executor.Command
	for c := range everywhere(t, "echo a; sleep 1000 & echo b >&2") {
		bad, refused := c, c
		bad.Dir = "/nonexistent"
		refused.Sandbox = sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: "/nonexistent"}
		commands = append(commands, c, bad, refused)
	}
	once := func() {
		for _, c := range commands {
			_, _ = executor.Run(t.Context(), c)
		}
	}
	once() // the poller and the like are made once
	before := holds(t)
	for range 5 {
		once()
	}
	// What earlier tests have left may be gone meanwhile.
	if after := holds(t); after.Descriptors > before.Descriptors || after.Children > before.Children {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// instances counts the inotify instances of the process, of which a user has 128.
func instances(t *testing.T) (n int) {
	t.Helper()
	for _, fd := range must.Get(filepath.Glob("/proc/self/fd/*"))(t) {
		if is, _ := os.Readlink(fd); is == "anon_inode:inotify" {
			n++
		}
	}
	return n
}

// Not parallel, as above.
func TestAPoolKeepsFewInotifyInstances(t *testing.T) {
	c := in(t, executor.Split, "echo a; echo b >&2")
	before := instances(t)
	pool := executor.NewPool(0, nil)
	defer pool.Close()
	for range 3 {
		must.Get(pool.Run(t.Context(), c))(t)
		if kept := instances(t) - before; kept != 2 {
			t.Errorf("the pool keeps %d instances", kept)
		}
	}
}
