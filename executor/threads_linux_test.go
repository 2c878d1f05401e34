package executor_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/cgroup"
)

// Go's runtime prints why it ends a program, here on a terminal that nobody reads yet.
func TestASandboxThatCannotStartItsThreadsFailsAtOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []executor.Terminal{executor.Split, executor.Off} {
		c := in(t, mode, "echo ran")
		groups, err := cgroup.Open()
		if err != nil {
			t.Skipf("no control groups for this test: %v", err)
		}
		t.Cleanup(groups.Close)
		c.Sandbox.Groups, c.Sandbox.Limits.Processes = groups, 10 // fewer than the machine leaves, to the helper
		c.Stdout, c.Stderr = io.Discard, io.Discard
		_, err = executor.Run(t.Context(), c)
		if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), "pids.max") {
			t.Errorf("%v: %v", mode, err)
		}
	}
}
