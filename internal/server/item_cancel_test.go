package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// The client is gone when the first command has ended, so that none follows.
func TestACancelledItemDoesNotGoOnWhenItComesAgain(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"websocket", "http"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			var ran atomic.Int32
			left := make(chan struct{})
			ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
				ran.Add(1)
				<-left
				return hello(ctx, io)
			})
			conn, item := dialAs(t, ts, agentSecret), shellCall("sh_1", "one", "two", "three")
			if status, body := ask(t, ts, "POST", "/v1/calls?wait=0", item); status != http.StatusAccepted {
				t.Fatalf("the item was answered by %d %s", status, body)
			}
			close(left)
			if status, body := ask(t, ts, "GET", "/v1/calls/sh_1%231", ""); status != http.StatusOK {
				t.Fatalf("the first command was answered by %d %s", status, body)
			}
			write(t, conn, `{"message_type":"cancel","tool_call_id":"sh_1"}`)
			until(t, conn, "not_running")
			for range 2 {
				var answer string
				if over == "http" {
					_, answer = ask(t, ts, "POST", "/v1/calls", item)
				} else {
					write(t, conn, item)
					answer, _ = until(t, conn, "shell_call_output")
				}
				if !strings.Contains(answer, "hello") || !strings.Contains(answer, "the call was cancelled") {
					t.Errorf("the item was answered by %s", answer)
				}
			}
			if n := ran.Load(); n != 1 {
				t.Errorf("%d commands ran", n)
			}
		})
	}
}

// Nothing runs between two commands while the client does not read, and a cancel still counts.
func TestACancelStopsAnItemBetweenTwoCommands(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for name, c := range map[string]struct{ secret, frame string }{
		"all, an approver":    {approverSecret, `{"message_type":"cancel","all":true,"reason":"enough"}`},
		"all, the agent":      {agentSecret, `{"message_type":"cancel","all":true,"reason":"enough"}`},
		"by its id, a person": {approverSecret, `{"message_type":"cancel","tool_call_id":"sh_1","reason":"enough"}`},
		"by its id, an agent": {agentSecret, `{"message_type":"cancel","tool_call_id":"sh_1","reason":"enough"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran atomic.Int32
			begun := make(chan struct{}, 2)
			ts := newLimitedServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
				ran.Add(1)
				begun <- struct{}{}
				io.Started(tools.Started{PID: 1})
				line := []byte(strings.Repeat("x", 64<<10))
				for range 512 { // 32 MiB, far beyond what sockets hold
					io.Output(tools.Stdout, line)
				}
				return tools.Result{}
			}, func(*dispatch.Limits, *Options) {}, func(o *Options) { o.OutboxBytes = 64 << 20 })
			conn, other := dialAs(t, ts, agentSecret), dialAs(t, ts, c.secret)
			write(t, conn, shellCall("sh_1", "one", "two"))
			<-begun
			for calls := ""; !strings.Contains(calls, `"calls":[]`); {
				write(t, other, `{"message_type":"list_calls","request_id":"q"}`)
				calls, _ = until(t, other, `"request_id":"q"`)
			}
			write(t, other, c.frame)
			pinged(t, other)
			conn.Close() // the item comes again
			again := dialAs(t, ts, agentSecret)
			write(t, again, shellCall("sh_1", "one", "two"))
			if answer, _ := until(t, again, "shell_call_output"); !strings.Contains(answer, "cancelled") {
				t.Errorf("it was answered by %s", answer[max(0, len(answer)-400):])
			}
			if n := ran.Load(); n != 1 {
				t.Errorf("%d commands ran", n)
			}
		})
	}
}

// The client is gone before it hears of it.
func TestACommandThatEndsInSpiteOfACancelIsTheLast(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	end := make(chan struct{})
	ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
		ran.Add(1)
		io.Started(tools.Started{PID: 1})
		<-end
		return tools.Result{}
	})
	conn, other, item := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret), shellCall("sh_1", "one", "two")
	write(t, conn, item)
	until(t, conn, "tool_started")
	conn.Close()
	write(t, other, `{"message_type":"cancel","tool_call_id":"sh_1"}`)
	pinged(t, other)
	close(end)
	write(t, other, item)
	if answer, _ := until(t, other, "shell_call_output"); !strings.Contains(answer, "cancelled") || ran.Load() != 1 {
		t.Errorf("%d commands ran, and it was answered by %s", ran.Load(), answer)
	}
}

func TestACancelStopsAnItemThatGoesOnMeanwhile(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"websocket", "http"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			var calls *dispatch.Dispatcher
			var ran atomic.Int32
			cancelled := make(chan struct{})
			ts := newLimitedServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
				if ran.Add(1) == 1 {
					return hello(ctx, io)
				}
				if <-cancelled; ctx.Err() != nil { // it began before the cancel
					return tools.Result{IsError: true, Failure: tools.Cancelled}
				}
				return hello(ctx, io)
			}, func(*dispatch.Limits, *Options) {}, func(o *Options) { calls = o.Dispatch })
			conn, person := dialAs(t, ts, agentSecret), dialAs(t, ts, approverSecret)
			pinged(t, person)
			ended := make(chan struct{})
			calls.Observe(func(c *dispatch.Call, event any) {
				if _, end := event.(dispatch.Final); end && c.ID == "sh_1#1" {
					close(ended)
					<-cancelled // the item goes on behind it
				}
			})
			go func() {
				defer close(cancelled)
				<-ended
				person.WriteMessage(websocket.TextMessage, []byte(`{"message_type":"cancel","all":true,"reason":"enough"}`))
				pinged(t, person)
			}()
			var answer string
			if item := shellCall("sh_1", "one", "two"); over == "http" {
				_, answer = ask(t, ts, "POST", "/v1/calls", item)
			} else {
				write(t, conn, item)
				answer, _ = until(t, conn, "shell_call_output")
			}
			<-cancelled // the answer may come before the pong
			if !strings.Contains(answer, "enough") {
				t.Errorf("it was answered by %s", answer)
			}
		})
	}
}

// as returns a frame of an agent; "": of none.
func as(agent, frame string) string {
	if agent == "" {
		return frame
	}
	return strings.Replace(frame, `{`, `{"agent_id":"`+agent+`",`, 1)
}

// Agents of one token may use the same id.
func TestACancelThatNamesAnAgentStopsItsCallAlone(t *testing.T) {
	t.Parallel()
	const cancel = `{"message_type":"cancel","tool_call_id":"c1"}`
	for answer, ask := range map[string]string{"tool_return_message": call("c1"), "shell_call_output": shellCall("c1", "one", "two")} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			var calls *dispatch.Dispatcher
			ts := newLimitedServer(t, policy.Allow, untilCancelled, func(_ *dispatch.Limits, o *Options) { o.CallsPerConnection = 10 }, func(o *Options) { calls = o.Dispatch })
			conn, other := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
			for _, agent := range []string{"a1", "a2", ""} {
				write(t, conn, as(agent, ask))
				until(t, conn, "tool_started")
			}
			running := func() (agents []string) {
				for _, c := range calls.Find("agent", "c1") {
					agents = append(agents, c.Key().Agent)
				}
				return agents
			}
			for _, from := range []*websocket.Conn{other, conn} {
				write(t, from, strings.Replace(cancel, `{`, `{"agent_id":"a4",`, 1))
				until(t, from, "not_running")
			}
			write(t, other, as("a2", cancel))
			until(t, conn, answer)
			if got := running(); !slices.Equal(got, []string{"a1", ""}) {
				t.Errorf("after the cancel of a2: calls of %q run", got)
			}
			write(t, conn, strings.Replace(cancel, `{`, `{"agent_id":"",`, 1))
			until(t, conn, answer)
			if got := running(); !slices.Equal(got, []string{"a1"}) {
				t.Errorf("after the cancel of no agent's: calls of %q run", got)
			}
			write(t, other, `{"message_type":"cancel","all":true,"agent_id":"a2"}`)
			pinged(t, other)
			if got := running(); !slices.Equal(got, []string{"a1"}) {
				t.Errorf("after the cancel of all of a2: calls of %q run", got)
			}
			write(t, other, `{"message_type":"cancel","all":true,"agent_id":"a1"}`)
			until(t, conn, answer)
		})
	}
}

// Whoever cancels before the call comes need not know who else uses the id.
func TestAnEarlyCancelThatNamesAnAgentStopsItsCallAlone(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, as("a1", `{"message_type":"cancel","tool_call_id":"c1"}`))
	until(t, conn, "not_running")
	for _, ask := range []string{as("a2", shellCall("c1", "one", "two")), as("a1", shellCall("c1", "one", "two"))} {
		write(t, conn, ask)
		if answer, _ := until(t, conn, "shell_call_output"); strings.Contains(answer, "cancelled before it came") != strings.Contains(ask, "a1") {
			t.Errorf("%s was answered by %s", ask, answer)
		}
	}
}

// Its other agents do not know of it.
func TestTheLateCancelOfAnItemStopsNoOtherAgentsCall(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"", `"agent_id":"a1",`} {
		ts := newCallServer(t, policy.Allow, hello)
		conn := dialAs(t, ts, agentSecret)
		write(t, conn, as("a1", shellCall("c1", "one", "two")))
		until(t, conn, "shell_call_output")
		write(t, conn, `{`+agent+`"message_type":"cancel","tool_call_id":"c1"}`)
		until(t, conn, "not_running")
		for answer, ask := range map[string]string{"shell_call_output": as("a2", shellCall("c1", "one", "two")), "tool_return_message": as("a3", call("c1"))} {
			write(t, conn, ask)
			if answer, _ := until(t, conn, answer); strings.Contains(answer, "call was cancelled") {
				t.Errorf("%s was answered by %s", ask, answer)
			}
		}
	}
}

// What it would stop has ended: an early cancel of it would stop something else.
func TestACancelDuringTheLastCommandOfAnItemLeavesNoEarlyCancel(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"while it ends", "when it has ended"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			var o *Options
			began, end, ended, cancelled := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
			ts := newLimitedServer(t, policy.Allow, func(context.Context, tools.IO) tools.Result {
				began <- struct{}{}
				<-end // the tool does not heed a cancel
				return tools.Result{}
			}, func(*dispatch.Limits, *Options) {}, func(opt *Options) { o = opt })
			conn, other := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
			o.Dispatch.Observe(func(c *dispatch.Call, event any) {
				if _, isEnd := event.(dispatch.Final); isEnd && c.ID == "sh_1#2" {
					close(ended)
					<-cancelled
				}
			})
			cancel := func() (inTime bool) {
				write(t, other, `{"message_type":"cancel","tool_call_id":"sh_1"}`, `{"message_type":"ping","nonce":"after"}`)
				_, before := until(t, other, `"after"`)
				close(cancelled)
				return !strings.Contains(strings.Join(before, "\n"), "not_running") // it may be answered already
			}
			inTime := true
			write(t, conn, shellCall("sh_1", "one", "two"))
			<-began
			end <- struct{}{}
			<-began
			if when == "while it ends" {
				cancel()
				close(end)
			} else {
				close(end)
				<-ended
				inTime = cancel()
			}
			if answer, _ := until(t, conn, "shell_call_output"); strings.Contains(answer, "call was cancelled") {
				t.Errorf("it was answered by %s", answer)
			}
			if left := o.Journal.EarlyCancels(); inTime && len(left["agent"]) != 0 {
				t.Errorf("%q are cancelled early", left)
			}
		})
	}
}
