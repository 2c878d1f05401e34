package server

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// reader is a tool that takes its input when it is told to.
type reader struct {
	next   chan struct{} // one value for each piece
	signal chan struct{} // gets a value for each signal
	got    []string
}

func newReader() *reader {
	return &reader{next: make(chan struct{}), signal: make(chan struct{}, 1)}
}

func (r *reader) run(ctx context.Context, io tools.IO) tools.Result {
	io.Started(tools.Started{PID: 1, Terminal: "split"})
	var kept []tools.Input
	wanted := 0
	for {
		if wanted > 0 && len(kept) > 0 {
			r.got = append(r.got, string(kept[0].Data))
			kept[0].Taken(true)
			kept = kept[1:]
			wanted--
		}
		select {
		case <-ctx.Done():
			return tools.Result{Failure: tools.Cancelled, IsError: true}
		case in := <-io.Input:
			if len(in.Data) > 0 {
				kept = append(kept, in)
				continue
			}
			r.got = append(r.got, in.Signal)
			r.signal <- struct{}{}
		case <-r.next:
			wanted++
		}
	}
}

func TestInputIsAnsweredWhenItIsTaken(t *testing.T) {
	t.Parallel()
	r := newReader()
	conn := dial(t, newCallServer(t, policy.Allow, r.run))
	write(t, conn, call("c1"))
	until(t, conn, "tool_started")
	write(t, conn,
		`{"message_type":"tool_input","request_id":"q1","tool_call_id":"c1","data":"one"}`,
		`{"message_type":"tool_input","request_id":"q2","tool_call_id":"c1","data":"two"}`,
		`{"message_type":"tool_input","request_id":"q3","tool_call_id":"c1","signal":"INT"}`)
	frame, before := until(t, conn, `"input_taken"`)
	if !strings.Contains(frame, `"q3"`) || len(before) != 0 {
		t.Errorf("got %s after %q: a signal does not wait for data", frame, before)
	}
	<-r.signal // it was answered when it was on its way
	r.next <- struct{}{}
	if frame, _ := until(t, conn, `"input_taken"`); !strings.Contains(frame, `"q1"`) {
		t.Errorf("got %s", frame)
	}
	write(t, conn, `{"message_type":"cancel","tool_call_id":"c1"}`)
	frame, before = until(t, conn, `"q2"`)
	if !strings.Contains(frame, `"not_running"`) || !strings.Contains(frame, "before it read") {
		t.Errorf("got %s", frame)
	}
	// The return and the answer about input may come in either order.
	if !strings.Contains(strings.Join(before, "\n"), "tool_return_message") {
		until(t, conn, "tool_return_message")
	}
	write(t, conn, `{"message_type":"tool_input","request_id":"q4","tool_call_id":"c1","data":"late"}`)
	if frame, _ := until(t, conn, `"q4"`); !strings.Contains(frame, `"not_running"`) {
		t.Errorf("got %s", frame)
	}
	must.Match(t, []string{"INT", "one"}, r.got)
}

func TestInputThatNamesAnAgentReachesItsCallAlone(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{PID: 1, Terminal: "split"})
		select {
		case in := <-io.Input:
			in.Taken(true)
			return tools.Result{Text: string(in.Data) + in.Signal}
		case <-ctx.Done():
			return tools.Result{IsError: true, Failure: tools.Cancelled}
		}
	})
	conn, other := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
	for _, agent := range []string{"a1", "a2"} {
		write(t, conn, strings.Replace(as(agent, call("c1")), `{`, `{"run_id":"of `+agent+`",`, 1))
		until(t, conn, "tool_started")
	}
	const data, signal = `{"message_type":"tool_input","tool_call_id":"c1","data":"data"}`, `{"message_type":"tool_input","tool_call_id":"c1","signal":"INT"}`
	for _, from := range []*websocket.Conn{conn, other} {
		write(t, from, data, as("a3", data))
		until(t, from, "agent_id of the one that is meant")
		until(t, from, "not_running")
	}
	write(t, other, as("a2", data))
	if ret, _ := until(t, conn, "tool_return_message"); !strings.Contains(ret, `"run_id":"of a2"`) || !strings.Contains(ret, `"result":"data`) {
		t.Errorf("got %s", ret)
	}
	write(t, other, as("a2", signal)) // late; the other's call still runs
	until(t, other, "not_running")
	write(t, other, as("a1", signal))
	if ret, _ := until(t, conn, "tool_return_message"); !strings.Contains(ret, `"run_id":"of a1"`) || !strings.Contains(ret, `"result":"INT`) {
		t.Errorf("got %s", ret)
	}
}

func TestAFloodOfUnreadInputIsRefused(t *testing.T) {
	t.Parallel()
	r := newReader()
	conn := dial(t, newCallServer(t, policy.Allow, r.run))
	write(t, conn, call("c1"))
	until(t, conn, "tool_started")
	data := `{"message_type":"tool_input","tool_call_id":"c1","data":"` + strings.Repeat("x", 1<<19) + `"}`
	write(t, conn, slices.Repeat([]string{data}, 8)...)
	frame, _ := until(t, conn, "error_message")
	if !strings.Contains(frame, "not_running") || !strings.Contains(frame, "does not read its input") {
		t.Errorf("got %s", frame)
	}
	write(t, conn, `{"message_type":"tool_input","request_id":"q1","tool_call_id":"c1","signal":"INT"}`)
	until(t, conn, `"input_taken"`)
	write(t, conn, `{"message_type":"cancel","tool_call_id":"c1"}`)
	until(t, conn, "tool_return_message")
}

func TestAWaitIsTold(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 2, 17, 10, 30, 0, 0, time.UTC)
	conn := dial(t, newCallServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
		io.Waiting(tools.Waiting{Waits: true, Kind: "password", Since: since, Process: executor.Process{PID: 7, Command: "sudo -v"}})
		io.Waiting(tools.Waiting{Kind: "password", Since: since, Process: executor.Process{PID: 7, Command: "sudo -v"}})
		return tools.Result{}
	}))
	write(t, conn, call("c1"))
	_, before := until(t, conn, "tool_return_message")
	var waits []string
	for _, frame := range before {
		if strings.Contains(frame, "waiting_for_input") {
			waits = append(waits, frame)
		}
	}
	rest := `,"kind":"password","since":"2026-02-17T10:30:00Z","pid":7,"command":"sudo -v"}`
	want := []string{
		`{"message_type":"waiting_for_input","tool_call_id":"c1","waiting":true` + rest,
		`{"message_type":"waiting_for_input","tool_call_id":"c1","waiting":false` + rest,
	}
	must.Match(t, want, waits)
}
