package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// serving prints a line and then every input it gets, until it is stopped.
func serving(ctx context.Context, io tools.IO) tools.Result {
	io.Started(tools.Started{PID: 42, Terminal: "split"})
	io.Output(tools.Stdout, []byte("up\n"))
	for {
		select {
		case in := <-io.Input:
			io.Output(tools.Stdout, in.Data)
		case <-ctx.Done():
			return tools.Result{IsError: true, Failure: tools.Cancelled}
		}
	}
}

func backgroundCall(id string) string {
	return strings.Replace(call(id), `"arguments":{}`, `"arguments":{"background":true}`, 1)
}

// handleOf reads the return of a call and the id of the call that runs on.
func handleOf(t *testing.T, conn *websocket.Conn) (handle string, ret message.ToolReturn) {
	t.Helper()
	frame, _ := until(t, conn, "tool_return_message")
	if err := json.Unmarshal([]byte(frame), &ret); err != nil || ret.Background == nil || ret.Status != "success" {
		t.Fatalf("%v in %s", err, frame)
	}
	return ret.Background.CallID, ret
}

// none fails the test when a frame is of a type.
func none(t *testing.T, frames []string, kind string) {
	t.Helper()
	for _, f := range frames {
		if strings.Contains(f, `"message_type":"`+kind+`"`) {
			t.Errorf("there is a %s: %s", kind, f)
		}
	}
}

func TestABackgroundCallIsFollowedAndItsEndIsToldToItsClient(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, serving)
	asking, other, person := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret), dialAs(t, ts, approverSecret)
	pinged(t, other)
	write(t, asking, backgroundCall("call_1"))
	handle, _ := handleOf(t, asking)
	started, before := until(t, asking, "tool_started")
	if len(before) != 0 || !strings.Contains(started, handle) {
		t.Errorf("after the return came %q, then %s", before, started)
	}
	if up, _ := until(t, asking, "tool_output_delta"); !strings.Contains(up, handle) || !strings.Contains(up, `"data":"up\n"`) {
		t.Errorf("the output is %s", up)
	}
	write(t, asking, `{"message_type":"tool_input","tool_call_id":"`+handle+`","data":"echoed"}`)
	until(t, asking, `"data":"echoed"`)
	write(t, person, `{"message_type":"list_calls","request_id":"q1"}`)
	if list, _ := until(t, person, `"calls"`); !strings.Contains(list, `"state":"running"`) || !strings.Contains(list, `"background_of":"call_1"`) {
		t.Errorf("listed are %s", list)
	}
	write(t, asking, `{"message_type":"cancel","tool_call_id":"`+handle+`","reason":"enough"}`)
	ended, _ := until(t, asking, "background_ended")
	var fields map[string]any
	must.Do(t, json.Unmarshal([]byte(ended), &fields))
	for _, name := range []string{"status", "tool_call", "role"} {
		if _, there := fields[name]; there {
			t.Errorf("readers of the family take it for a return: %s", ended)
		}
	}
	if fields["cause"] != "cancel" || fields["background_of"] != "call_1" || fields["tool_call_id"] != handle || !strings.Contains(ended, "enough") {
		t.Errorf("the end is %s", ended)
	}
	again, before := until(t, other, "background_ended")
	if again != ended {
		t.Errorf("the client's other connection is told %s", again)
	}
	none(t, before, "tool_output_delta")
	write(t, person, `{"message_type":"ping","nonce":"last"}`)
	_, before = until(t, person, "last")
	none(t, before, "background_ended")
}

func TestABackgroundCallOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	ts := newLimitedServer(t, policy.Allow, serving, func(l *dispatch.Limits, _ *Options) { l.Linger = 0 })
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, backgroundCall("call_1"))
	handle, first := handleOf(t, conn)
	conn.Close()
	conn = dialAs(t, ts, agentSecret)
	for out := ""; !strings.Contains(out, `"data":"up\n"`); { // it may print after its beginning is told
		write(t, conn, `{"message_type":"get_output","request_id":"q1","tool_call_id":"`+handle+`"}`)
		out, _ = until(t, conn, `"q1"`)
	}
	write(t, conn, backgroundCall("call_1"))
	again, ret := handleOf(t, conn)
	if again != handle || !ret.Replayed || ret.ID != first.ID {
		t.Errorf("the repeat got %+v", ret)
	}
	if up, _ := until(t, conn, "tool_output_delta"); !strings.Contains(up, `"offset":0,"data":"up\n"`) {
		t.Errorf("after it came back the client got %s", up)
	}
	write(t, conn, `{"message_type":"cancel","all":true}`)
	until(t, conn, "background_ended")
	write(t, conn, `{"message_type":"get_output","request_id":"q2","tool_call_id":"`+handle+`"}`)
	if out, _ := until(t, conn, `"q2"`); !strings.Contains(out, `"data":"up\n"`) || !strings.Contains(out, `"eof":true`) {
		t.Errorf("after the end its output is %s", out)
	}
}

func TestBackgroundCallsTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, untilCancelled)
	conn := dialAs(t, ts, agentSecret)
	for _, id := range []string{"a", "b"} { // as many as a connection may have unanswered
		write(t, conn, backgroundCall(id))
		handleOf(t, conn)
	}
	write(t, conn, backgroundCall("c"))
	if ret, _ := until(t, conn, "tool_return_message"); !strings.Contains(ret, "too_many_calls") || !strings.Contains(ret, "background") {
		t.Errorf("a third got %s", ret)
	}
	write(t, conn, call("d"))
	until(t, conn, `"tool_started","tool_call_id":"d"`)
	write(t, conn, `{"message_type":"cancel","all":true}`)
}

func TestNoConnectionTakesAllPlacesOfBackgroundCalls(t *testing.T) {
	t.Parallel()
	ts := newLimitedServer(t, policy.Allow, echoing, func(l *dispatch.Limits, o *Options) {
		l.Background, l.BackgroundEach, o.CallsPerConnection = 2, 1, 2
	})
	first, second := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
	write(t, first, backgroundCall("a"))
	running, _ := handleOf(t, first)
	write(t, first, backgroundCall("b"))
	if ret, _ := until(t, first, "tool_return_message"); !strings.Contains(ret, "too_many_calls") || !strings.Contains(ret, "limits.background_per_connection") {
		t.Errorf("a second one of the connection got %s", ret)
	}
	write(t, second, backgroundCall("c"))
	handleOf(t, second)
	write(t, first, `{"message_type":"cancel","tool_call_id":"`+running+`"}`)
	until(t, first, `"background_ended"`)
	write(t, first, backgroundCall("d"))
	handleOf(t, first)
}

// goodbyeTo ends a connection; when it returns the server writes nothing to it any
// more.
func goodbyeTo(t *testing.T, conn *websocket.Conn) {
	t.Helper()
	must.Do(t, conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")))
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

func TestAnAbsentClientIsToldTheEndOfItsBackgroundCallWhenItComesBack(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, serving)
	asking, person := dialAs(t, ts, agentSecret), dialAs(t, ts, approverSecret)
	write(t, asking, backgroundCall("call_1"))
	handle, _ := handleOf(t, asking)
	goodbyeTo(t, asking)
	write(t, person, `{"message_type":"cancel","tool_call_id":"`+handle+`","reason":"enough"}`)
	for list := ""; !strings.Contains(list, `"state":"ended"`); {
		write(t, person, `{"message_type":"list_calls","request_id":"q1","all":true}`)
		list, _ = until(t, person, `"calls"`)
		if strings.Contains(list, `"state":"running"`) {
			list = ""
		}
	}
	back := dialAs(t, ts, agentSecret)
	ended, before := until(t, back, "background_ended")
	if len(before) != 0 || !strings.Contains(ended, handle) || !strings.Contains(ended, `"background_of":"call_1"`) || !strings.Contains(ended, `"error_type":"cancelled"`) {
		t.Errorf("after %q came %s", before, ended)
	}
}
