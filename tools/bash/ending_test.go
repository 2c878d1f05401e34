package bash

import (
	"strings"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

func TestTheResultSaysWhatEndedTheCommandAndWhatToDo(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	v := &invocation{tool: newTool(ws).(*tool), profile: sandbox.Profile{Limits: sandbox.Limits{MemoryBytes: 64 << 20, Processes: 99}}}
	asks := executor.Waiting{Waits: true, Kind: "password", Process: executor.Process{PID: 7, Command: "sudo -v"}}
	for _, c := range []struct {
		exit    executor.Exit
		failure tools.Failure
		want    []string
	}{
		{executor.Exit{Reason: executor.Starved, Code: 143, Waiting: asks}, tools.InputNeeded, []string{"sudo -v waits for a password", `"stdin": "open"`}},
		{executor.Exit{Reason: executor.TimedOut, Code: 143, Waiting: asks}, tools.Timeout, []string{"timed out", "waiting for input: sudo -v"}},
		{executor.Exit{Code: 137, Signal: "SIGKILL", Limit: "memory"}, "", []string{"64 MiB", "sandbox.limits.memory_bytes", "Exit code: 137"}},
		{executor.Exit{Code: 2, Limit: "processes"}, "", []string{"Exit code: 2\n", "cannot start more processes: the", "as it may have, 99;", "(sandbox.limits.processes in the configuration)"}},
		{executor.Exit{Code: 137, Signal: "SIGKILL", Limit: "machine"}, "", []string{"ran out of memory", "Exit code: 137"}},
		{executor.Exit{Code: 137, Signal: "SIGKILL", Lost: true}, "", []string{"killed from outside toold", "Exit code: 137"}},
		{executor.Exit{Reason: executor.Stopped, Code: 137, Lost: true}, tools.Cancelled, []string{"perhaps before the command started", "before you run it again"}},
		{executor.Exit{Reason: executor.Stopped, Code: 137, Stuck: true}, tools.Cancelled, []string{"were killed but still exist"}},
	} {
		r := v.result(c.exit, nil)
		v.addDenials(&r, c.exit, refused{}, "")
		for _, want := range c.want {
			if !strings.Contains(r.Text, want) {
				t.Errorf("%q lacks %q", r.Text, want)
			}
		}
		if r.Failure != c.failure || !r.IsError {
			t.Errorf("got %+v", r)
		}
	}
}
