package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// fetch asks for a part of the output of call_1.
func fetch(t *testing.T, conn *websocket.Conn, stream string, offset, limit int) message.Output {
	t.Helper()
	write(t, conn, fmt.Sprintf(`{"message_type":"get_output","request_id":"q","tool_call_id":"call_1","stream":%q,"offset":%d,"limit":%d}`, stream, offset, limit))
	frame, _ := until(t, conn, `"request_id":"q"`)
	var out message.Output
	if err := json.Unmarshal([]byte(frame), &out); err != nil || out.MessageType != "output" {
		t.Fatalf("%v in %s", err, frame)
	}
	return out
}

func TestOutputIsReadByStreamAndOffset(t *testing.T) {
	t.Parallel()
	printed, end := make(chan struct{}), make(chan struct{})
	ts := newCallServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{})
		io.Output(tools.Stdout, []byte("one "))
		io.Output(tools.Stderr, []byte("two "))
		io.Output(tools.Stdout, []byte("\xff\xfe"))
		close(printed)
		<-end
		return tools.Result{}
	})
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, call("call_1"))
	<-printed
	for _, running := range []bool{true, false} {
		if !running {
			close(end)
			until(t, conn, "tool_return_message")
		}
		for _, c := range []struct {
			stream        string
			offset, limit int
			want          message.Output
		}{
			{"stdout", 0, 0, message.Output{DataB64: "b25lIP/+", NextOffset: 6, EOF: !running}},
			{"stdout", 1, 2, message.Output{Data: text("ne"), Offset: 1, NextOffset: 3}},
			{"stderr", 0, 0, message.Output{Data: text("two "), NextOffset: 4, EOF: !running}},
			{"stderr", 4, 0, message.Output{Data: text(""), Offset: 4, NextOffset: 4, EOF: !running}},
			{"combined", 2, 5, message.Output{Data: text("e two"), Offset: 2, NextOffset: 7}},
			{"combined", 8, 2, message.Output{DataB64: "//4=", Offset: 8, NextOffset: 10, EOF: !running}},
		} {
			c.want.MessageType, c.want.RequestID, c.want.CallID, c.want.Stream = "output", "q", "call_1", c.stream
			if diff := cmp.Diff(c.want, fetch(t, conn, c.stream, c.offset, c.limit)); diff != "" {
				t.Errorf("running %v, %s from %d (-want +got):\n%s", running, c.stream, c.offset, diff)
			}
		}
		write(t, conn, `{"message_type":"get_output","request_id":"far","tool_call_id":"call_1","stream":"stderr","offset":5}`)
		if e, _ := until(t, conn, "far"); !strings.Contains(e, "invalid_arguments") || !strings.Contains(e, "stderr has 4 bytes") {
			t.Errorf("running %v: an offset beyond the end gets %s", running, e)
		}
	}
}

// text is the data of an answer.
func text(s string) *string { return &s }

func TestWhatIsNotKeptIsMarked(t *testing.T) {
	t.Parallel()
	ts := newLimitedServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{})
		io.Output(tools.Stdout, []byte(strings.Repeat("x", 1000)))
		return tools.Result{}
	}, func(l *dispatch.Limits, _ *Options) { l.SpoolBytes = 100 })
	conn := dialAs(t, ts, agentSecret)
	made(t, conn, "call_1")
	out := fetch(t, conn, "stdout", 0, 0)
	if out.Data == nil || len(*out.Data) != 100 || !out.EOF || out.Gap == nil || *out.Gap != (message.Gap{From: 100, To: 1000}) {
		t.Errorf("got %+v", out)
	}
	out = fetch(t, conn, "stdout", 500, 0)
	if out.Data == nil || *out.Data != "" || !out.EOF || out.Gap == nil || *out.Gap != (message.Gap{From: 500, To: 1000}) {
		t.Errorf("beyond what is kept: %+v", out)
	}
}

func TestACallThatPrintedNothingHasEmptyOutput(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{})
		return tools.Result{}
	})
	conn := dialAs(t, ts, agentSecret)
	made(t, conn, "call_1")
	if out := fetch(t, conn, "combined", 0, 0); !out.EOF || out.Data == nil || *out.Data != "" || out.Gap != nil {
		t.Errorf("got %+v", out)
	}
}

func TestAQueuedCallHasNoOutputYet(t *testing.T) {
	t.Parallel()
	ts := newLimitedServer(t, policy.Allow, untilCancelled, func(l *dispatch.Limits, _ *Options) { l.Concurrent = 1 })
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, call("call_1"))
	until(t, conn, "tool_started")
	write(t, conn, call("call_2"))
	if queued, _ := until(t, conn, "tool_queued"); !strings.Contains(queued, `"tool_call_id":"call_2","position":1`) {
		t.Errorf("it is told %s", queued)
	}
	write(t, conn, `{"message_type":"get_output","request_id":"q","tool_call_id":"call_2"}`)
	until(t, conn, "has not begun")
	write(t, conn, `{"message_type":"cancel","tool_call_id":"call_2"}`)
	ret, before := until(t, conn, "tool_return_message")
	if !strings.Contains(ret, "call_2") || !strings.Contains(ret, `"cause":"cancel"`) {
		t.Errorf("it was answered %s", ret)
	}
	none(t, before, "tool_started")
	write(t, conn, `{"message_type":"cancel","all":true}`)
	until(t, conn, "tool_return_message")
}

// Ids are unique per agent only.
func TestOneAgentDoesNotGetTheOutputOfAnother(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	ran := 0 // the calls run one after another
	ts := newCallServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
		ran++
		n := ran
		io.Output(tools.Stdout, fmt.Append(nil, "of agent-", n))
		io.Started(tools.Started{})
		if n == 3 {
			<-end
		}
		return tools.Result{}
	})
	conn, other := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
	of := func(agent string) string {
		return strings.Replace(call("call_1"), `{`, `{"agent_id":"`+agent+`",`, 1)
	}
	for _, agent := range []string{"agent-1", "agent-2"} {
		write(t, conn, of(agent))
		until(t, conn, "tool_return_message")
	}
	asks := func(conn *websocket.Conn, more, want string) {
		t.Helper()
		write(t, conn, `{"message_type":"get_output","request_id":"q","tool_call_id":"call_1"`+more+`}`)
		if frame, _ := until(t, conn, `"request_id":"q"`); !strings.Contains(frame, want) {
			t.Errorf("asked with %q: %s, want %q", more, frame, want)
		}
	}
	asks(conn, "", "invalid_arguments")
	write(t, conn, of("agent-3"))
	until(t, conn, "tool_started")
	asks(other, "", "invalid_arguments")
	asks(conn, "", "of agent-3")
	for _, agent := range []string{"agent-1", "agent-2", "agent-3"} {
		asks(conn, `,"agent_id":"`+agent+`"`, "of "+agent)
	}
	asks(conn, `,"agent_id":"agent-4"`, "not_found")
	close(end)
	until(t, conn, "tool_return_message")
}

func TestTheOutputOfACallThatAnotherConnectionFollowsIsLive(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
		io.Output(tools.Stdout, []byte("so far"))
		return untilCancelled(ctx, io)
	})
	conn, other := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
	for agent, c := range map[string]*websocket.Conn{"a1": conn, "a2": other} {
		write(t, c, as(agent, call("c1")))
		until(t, c, "tool_started")
	}
	write(t, conn, as("a2", `{"message_type":"get_output","request_id":"q","tool_call_id":"c1"}`))
	if frame, _ := until(t, conn, `"request_id":"q"`); !strings.Contains(frame, "so far") || strings.Contains(frame, `"eof":true`) {
		t.Errorf("got %s", frame)
	}
	write(t, conn, `{"message_type":"cancel","all":true}`)
	until(t, conn, "tool_return_message")
}
