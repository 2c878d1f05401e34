package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// daemon is a server that says what a test tells it to.
type daemon struct {
	t    *testing.T
	conn *websocket.Conn
}

// receive returns the next frame from the client, as text.
func (d *daemon) receive() string {
	_, frame, err := d.conn.ReadMessage()
	if err != nil {
		return ""
	}
	return string(frame)
}

// receiveType returns the next frame and checks its type.
func (d *daemon) receiveType(want string) map[string]any {
	frame := map[string]any{}
	text := d.receive()
	if err := json.Unmarshal([]byte(text), &frame); err != nil || frame["message_type"] != want {
		d.t.Errorf("the client sent %s, want %s", text, want)
	}
	return frame
}

func (d *daemon) send(format string, args ...any) {
	if err := d.conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...)); err != nil {
		d.t.Errorf("cannot send: %v", err)
	}
}

const ack = `{"message_type":"hello_ack","protocol":1,"version":"v1","conn_id":"conn-1","workspace":"/w","roles":["agent"]}`

// serve starts a daemon that greets and then does what script says.
func serve(t *testing.T, script func(*daemon)) (Options, *httptest.Server) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Errorf("cannot upgrade: %v", err)
			return
		}
		defer conn.Close()
		d := &daemon{t, conn}
		d.receiveType("hello")
		d.send(ack)
		script(d)
		for d.receive() != "" { // until the client has gone
		}
	}))
	server.Start()
	t.Cleanup(server.Close)
	return Options{URL: "ws" + strings.TrimPrefix(server.URL, "http"), Token: "secret", Name: "test"}, server
}

func dial(t *testing.T, script func(*daemon)) *Client {
	t.Helper()
	options, _ := serve(t, script)
	c := must.Get(Dial(t.Context(), options))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestACallIsFollowedToItsReturn(t *testing.T) {
	t.Parallel()
	c := dial(t, func(d *daemon) {
		request := d.receiveType("approval_request_message")
		want := map[string]any{
			"message_type": "approval_request_message", "agent_id": "agent-1",
			"tool_call": map[string]any{"tool_call_id": "c1", "tool_name": "bash", "arguments": map[string]any{"command": "a <b> && c"}},
		}
		if diff := cmp.Diff(want, request); diff != "" {
			d.t.Errorf("(-want +got)\n%s", diff)
		}
		for _, whose := range []string{`,"agent_id":"agent-2"`, ``, `,"agent_id":"agent-1"`} { // of the three calls c1 the last is that of c
			mine := strings.HasSuffix(whose, `1"`)
			d.send(`{"message_type":"policy_decision","tool_call_id":"c1"%s,"action":"allow","rule":"r"}`, whose)
			d.send(`{"message_type":"tool_started","tool_call_id":"c1"%s,"pid":7}`, whose)
			d.send(`{"message_type":"tool_output_delta","tool_call_id":"other"%s,"stream":"stdout","data":"not mine"}`, whose)
			d.send(`{"message_type":"tool_output_delta","tool_call_id":"c1"%s,"stream":"stdout","offset":0,"data":"é"}`, whose)
			d.send(`{"message_type":"tool_output_delta","tool_call_id":"c1"%s,"stream":"stderr","offset":0,"data_b64":"/w=="}`, whose)
			d.send(`{"message_type":"error_message","error_type":"not_running","message":"m","tool_call_id":"c1"%s}`, whose)
			d.send(`{"message_type":"tool_return_message","tool_call_id":"c1"%s,"status":"success","result":"mine: %v","exit_code":0}`, whose, mine)
		}
	})
	var got []string
	note := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	r, err := c.Call(t.Context(), Call{ID: "c1", Tool: "bash", Arguments: map[string]string{"command": "a <b> && c"}, AgentID: "agent-1"}, Events{
		Decision: func(d message.PolicyDecision) { note("%s by %s", d.Action, d.Rule) },
		Started:  func(s message.ToolStarted) { note("pid %d", s.PID) },
		Output:   func(d message.OutputDelta, data []byte) { note("%s %q", d.Stream, data) },
	})
	if err != nil || r.Status != "success" || r.Result != "mine: true" {
		t.Fatalf("got %+v, %v", r, err)
	}
	want := []string{"allow by r", "pid 7", `stdout "é"`, `stderr "\xff"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if g := c.Hello(); g.Workspace != "/w" || g.Version != "v1" {
		t.Errorf("got the greeting %+v", g)
	}
}

func TestCallsShareAConnection(t *testing.T) {
	t.Parallel()
	const calls = 20
	c := dial(t, func(d *daemon) {
		var ids []string
		for range calls {
			call := d.receiveType("approval_request_message")["tool_call"].(map[string]any)
			ids = append(ids, call["tool_call_id"].(string))
		}
		for i := range ids {
			d.send(`{"message_type":"tool_return_message","tool_call_id":%q,"result":%q}`, ids[calls-1-i], ids[calls-1-i])
		}
	})
	failures := make(chan error, calls)
	for range calls {
		// Ends with its call.
		go func() {
			id := message.NewID("call")
			r, err := c.Call(t.Context(), Call{ID: id, Tool: "bash", Arguments: json.RawMessage(`{}`)}, Events{})
			if err == nil && r.Result != id {
				err = fmt.Errorf("call %s got the return of %s", id, r.Result)
			}
			failures <- err
		}()
	}
	for range calls {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}

func TestAnErrorInPlaceOfAReturnEndsTheCall(t *testing.T) {
	t.Parallel()
	c := dial(t, func(d *daemon) {
		d.receive()
		d.send(`{"message_type":"error_message","error_type":"duplicate_tool_call","message":"m","tool_call_id":"c1"}`)
	})
	_, err := c.Call(t.Context(), Call{ID: "c1", Tool: "bash"}, Events{})
	var refused *message.Error
	if !errors.As(err, &refused) || refused.Type != message.DuplicateToolCall {
		t.Errorf("got %v, want duplicate_tool_call", err)
	}
	if _, err := c.Call(t.Context(), Call{Tool: "bash", Arguments: func() {}}, Events{}); err == nil {
		t.Error("arguments that are no JSON were sent")
	}
}

func TestARefusalOfTheAgentsNameEndsTheCall(t *testing.T) {
	t.Parallel()
	c := dial(t, func(d *daemon) {
		d.receive()
		d.send(`{"message_type":"tool_return_message","tool_call_id":"c1","status":"error","error_type":"invalid_arguments","result":"agent_id must be text"}`)
	})
	r, err := c.Call(t.Context(), Call{ID: "c1", Tool: "bash", AgentID: "a\u202e"}, Events{})
	if err != nil || r.Status != "error" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// The daemon's error would name no call.
func TestACallThatTheDaemonCannotReadIsNotSent(t *testing.T) {
	t.Parallel()
	c := dial(t, func(d *daemon) {
		if frame := d.receive(); frame != "" {
			d.t.Errorf("the client sent %.200q", frame)
		}
	})
	for name, call := range map[string]Call{
		"invalid UTF-8": {Tool: "bash", Arguments: json.RawMessage("{\"command\": \"echo \xff\"}")},
		"deep":          {Tool: "bash", Arguments: json.RawMessage(`{"command": ` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`)},
		"long id":       {ID: strings.Repeat("i", 300), Tool: "bash", Arguments: json.RawMessage(`{}`)},
		"control in id": {ID: "a\nb", Tool: "bash", Arguments: json.RawMessage(`{}`)},
	} {
		_, err := c.Call(t.Context(), call, Events{})
		var refused *message.Error
		if !errors.As(err, &refused) {
			t.Errorf("%s: got %v, want a *message.Error", name, err)
		}
	}
	c.Close()
}

func TestALostConnectionEndsWhatWaits(t *testing.T) {
	t.Parallel()
	c := dial(t, func(d *daemon) {
		d.receive()
		d.send(`{"message_type":"tool_output_delta","tool_call_id":"c1","stream":"stdout","data":"last words"}`)
		d.conn.Close()
	})
	heard := ""
	_, err := c.Call(t.Context(), Call{ID: "c1", Tool: "bash"}, Events{
		Output: func(_ message.OutputDelta, data []byte) { heard += string(data) },
	})
	if !errors.Is(err, ErrClosed) || errors.Is(err, ErrNotSent) || heard != "last words" {
		t.Errorf("got %v after %q, want ErrClosed alone after the last words", err, heard)
	}
	<-c.Done()
	if _, err := c.Call(t.Context(), Call{ID: "c2", Tool: "bash"}, Events{}); !errors.Is(err, ErrClosed) || !errors.Is(err, ErrNotSent) {
		t.Errorf("a call on the lost connection: got %v, want ErrNotSent", err)
	}
	if err := c.Ping(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a ping on the lost connection: got %v, want ErrClosed", err)
	}
}

func TestTheEndOfAContextEndsTheWaiting(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	c := dial(t, func(d *daemon) {
		d.receiveType("approval_request_message")
		close(arrived)
		if f := d.receiveType("cancel"); f["tool_call_id"] != "c1" || f["reason"] != "enough" {
			d.t.Errorf("got %v", f)
		}
		if f := d.receiveType("cancel"); f["all"] != true {
			d.t.Errorf("got %v", f)
		}
	})
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("the person left")
	// Ends when the call has arrived.
	go func() { <-arrived; stop(why) }()
	if _, err := c.Call(ctx, Call{ID: "c1", Tool: "bash"}, Events{}); !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
	if c.Cancel("", "") == nil || c.Stop(t.Context(), "", "") == nil {
		t.Error("a call without an id is cancelled")
	}
	if err := errors.Join(c.Cancel("c1", "enough"), c.CancelAll("")); err != nil {
		t.Error(err)
	}
}

func TestInputIsSentAsBytes(t *testing.T) {
	t.Parallel()
	got := make(chan string, 4)
	c := dial(t, func(d *daemon) {
		for range cap(got) {
			got <- d.receive()
		}
	})
	for _, in := range []message.ToolInput{
		{CallID: "c1", Data: []byte("y\n\xff")},
		{CallID: "c1", EOF: true},
		{CallID: "c1", Signal: "INT"},
		{CallID: "c1", Rows: 1, Cols: 2},
	} {
		must.Do(t, c.Input(in))
		frame := []byte(<-got)
		decoded, errs := (&message.Decoder{}).Decode(frame)
		if diff := cmp.Diff([]message.Inbound{&in}, decoded); diff != "" || len(errs) > 0 {
			t.Errorf("%s: %v (-want +got)\n%s", frame, errs, diff)
		}
	}
}

func TestQuestionsGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	wanted := message.ListMessages{
		Before: "m9", After: "m1", Limit: 3, Order: "asc", RunID: "r", StepID: "s", AgentID: "a", ConversationID: "c", CallID: "c1", OTID: "o",
		GroupID: "g", SenderID: "u", Workspace: "/src/app", MessageTypes: []string{"x"}, Status: "success",
	}
	c := dial(t, func(d *daemon) {
		for range 4 {
			var q struct {
				Type      string `json:"message_type"`
				RequestID string `json:"request_id"`
				Nonce     string `json:"nonce"`
			}
			frame := []byte(d.receive())
			decoded, errs := (&message.Decoder{}).Decode(frame)
			if len(errs) > 0 {
				d.t.Errorf("%s: %v", frame, errs)
			}
			if err := json.Unmarshal(frame, &q); err != nil {
				d.t.Error(err)
			}
			if list, ok := decoded[0].(*message.ListMessages); ok {
				list.MessageType, list.RequestID = "", ""
				if diff := cmp.Diff(&wanted, list); diff != "" {
					d.t.Errorf("%s: (-want +got)\n%s", frame, diff)
				}
			}
			d.send(`{"message_type":"output","request_id":"of somebody else","data":"x"}`)
			switch q.Type {
			case "get_output":
				d.send(`{"message_type":"output","request_id":%q,"tool_call_id":"c1","data_b64":"/w==","next_offset":5}`, q.RequestID)
			case "list_messages":
				d.send(`{"message_type":"messages","request_id":%q,"messages":[{}],"has_more":true}`, q.RequestID)
			case "explain_policy":
				d.send(`{"message_type":"error_message","error_type":"invalid_arguments","message":"m","request_id":%q}`, q.RequestID)
			case "ping":
				d.send(`{"message_type":"pong","nonce":%q}`, q.Nonce)
			}
		}
	})
	out, data, err := c.GetOutput(t.Context(), message.GetOutput{CallID: "c1", Stream: "stdout", Offset: 4, Limit: 3})
	if err != nil || string(data) != "\xff" || out.NextOffset != 5 {
		t.Errorf("got %+v, %q, %v", out, data, err)
	}
	page, err := c.ListMessages(t.Context(), wanted)
	if err != nil || len(page.Messages) != 1 || !page.HasMore {
		t.Errorf("got %+v, %v", page, err)
	}
	var refused *message.Error
	if _, err := c.ExplainPolicy(t.Context(), Call{Tool: "bash", Arguments: json.RawMessage(`{}`)}); !errors.As(err, &refused) {
		t.Errorf("got %v, want the daemon's error", err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDialTellsWhyItFailed(t *testing.T) {
	t.Parallel()
	options, server := serve(t, func(*daemon) {})
	options.Token = "wrong"
	if _, err := Dial(t.Context(), options); err == nil || !strings.Contains(err.Error(), "token is missing or wrong") || errors.Is(err, ErrUnreachable) {
		t.Errorf("a wrong token: got %v", err)
	}
	server.Close()
	if _, err := Dial(t.Context(), options); !errors.Is(err, ErrUnreachable) {
		t.Errorf("nobody there: got %v, want ErrUnreachable", err)
	}
}

func TestAUnixSocketNeedsNoURL(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	listener := must.Get(net.Listen("unix", path))(t)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil || r.URL.Path != "/v1/ws" {
			t.Errorf("%s: %v", r.URL, err)
			return
		}
		defer conn.Close()
		d := &daemon{t, conn}
		d.receiveType("hello")
		d.send(ack)
		d.receive()
	})}
	served := make(chan error)
	// Ends when the server is closed.
	go func() { served <- server.Serve(listener) }()
	c := must.Get(Dial(t.Context(), Options{Socket: path}))(t)
	c.Close()
	c.Close()
	server.Close()
	<-served
}
