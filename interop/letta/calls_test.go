package letta

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/link"
	"github.com/toold/toold/message"
)

// A daemon that is killed leaves connections that look open for a moment.
func TestACallThatCouldNotBeSentDidNotRun(t *testing.T) {
	t.Parallel()
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		for err == nil {
			if _, _, err = conn.ReadMessage(); err == nil {
				err = conn.WriteMessage(websocket.TextMessage, []byte(`{"message_type":"hello_ack","protocol":1,"version":"v1","conn_id":"conn-1","workspace":"/w","roles":["agent"]}`))
			}
		}
	}))
	defer daemon.Close()
	b := &bridge{daemon: link.New(func(ctx context.Context, _ string) (*client.Client, error) {
		c, err := client.Dial(ctx, client.Options{URL: "ws" + strings.TrimPrefix(daemon.URL, "http"), Token: "secret"})
		if err == nil {
			c.Close()
		}
		return c, err
	})}
	defer b.daemon.Close()
	b.running = map[string]*running{}
	o, _ := b.perform(t.Context(), client.Call{ID: "c1", Tool: "bash", Arguments: map[string]string{"command": "true"}}, nil)
	if o.ok || !strings.Contains(o.text, "nothing ran") {
		t.Errorf("the model is told: %s", o.text)
	}
}

// Models restart their ids, and the daemon answers one that it knows from its record: an old yes is not one for a new
// call of the server's own tools, which the server would run.
func TestAnOldDecisionLetsNoNewCallRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		replayed     bool
		age          time.Duration
		conversation string
		want         bool
	}{
		{false, time.Hour, "conv-1", true},
		{true, time.Second, "conv-1", true},
		{true, time.Hour, "conv-1", false},
		{true, time.Second, "conv-2", false},
	} {
		daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for {
				var f struct {
					Kind string `json:"message_type"`
					ID   string `json:"request_id"`
				}
				if conn.ReadJSON(&f) != nil {
					return
				}
				answer := map[string]any{"message_type": "hello_ack", "protocol": 1, "version": "v1", "conn_id": "conn-1", "workspace": "/w", "roles": []string{"agent"}}
				switch f.Kind {
				case "approval_request_message":
					answer = map[string]any{
						"message_type": "tool_return_message", "tool_call_id": "call_1", "agent_id": "agent-1", "status": "success", "result": "allowed",
						"replayed": c.replayed, "date": time.Now().Add(-c.age).UTC().Format(time.RFC3339),
					}
				case "list_calls":
					call := map[string]any{"tool_call_id": "call_1", "agent_id": "agent-1", "conversation_id": c.conversation, "state": "returned"}
					answer = map[string]any{"message_type": "calls", "request_id": f.ID, "calls": []any{call}}
				}
				if err := conn.WriteJSON(answer); err != nil {
					t.Error(err)
				}
			}
		}))
		b := &bridge{agent: "agent-1", conversation: "conv-1", running: map[string]*running{}}
		b.daemon = link.New(func(ctx context.Context, _ string) (*client.Client, error) {
			return client.Dial(ctx, client.Options{URL: "ws" + strings.TrimPrefix(daemon.URL, "http"), Token: "secret"})
		})
		h := &follower{bridge: b}
		got := h.answerTo(t.Context(), message.ToolCall{ID: "call_1", Name: "Bash", Arguments: []byte(`{"command":"git push"}`)}, false)
		if got["approve"] != c.want {
			t.Errorf("%+v: the server is told %v", c, got)
		}
		b.daemon.Close()
		daemon.Close()
	}
}
