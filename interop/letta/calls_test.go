package letta

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/link"
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
	o := b.perform(t.Context(), client.Call{ID: "c1", Tool: "bash", Arguments: map[string]string{"command": "true"}}, nil)
	if o.ok || !strings.Contains(o.text, "nothing ran") {
		t.Errorf("the model is told: %s", o.text)
	}
}
