package server

import (
	"context"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

func TestNoOutputComesBeforeItsCallHasStarted(t *testing.T) {
	t.Parallel()
	wrote, tell := make(chan struct{}), make(chan struct{})
	ts := newCallServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
		io.Output(tools.Stdout, []byte("hello\n"))
		close(wrote)
		<-tell
		io.Started(tools.Started{PID: 1, Terminal: "split"})
		return tools.Result{}
	})
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, call("call_1"))
	<-wrote
	// The second answer comes after a turn in which there was output to write.
	var early []string
	for range 2 {
		write(t, conn, "no JSON")
		_, before := until(t, conn, "error_message")
		early = append(early, before...)
	}
	close(tell)
	_, before := until(t, conn, "tool_started")
	if early = append(early, before...); strings.Contains(strings.Join(early, "\n"), "tool_output_delta") {
		t.Errorf("before tool_started came:\n%s", strings.Join(early, "\n"))
	}
	if _, before = until(t, conn, "tool_return_message"); !strings.Contains(strings.Join(before, "\n"), "tool_output_delta") {
		t.Errorf("between tool_started and the return came:\n%s", strings.Join(before, "\n"))
	}
}
