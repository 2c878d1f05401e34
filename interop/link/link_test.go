package link_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/link"
)

const ack = `{"message_type":"hello_ack","protocol":1,"version":"v1","conn_id":"conn-1","workspace":"/w","roles":["agent"]}`

// serve starts a daemon that answers the call of each connection by the next of answers; "" ends the connection.
func serve(t *testing.T, answers ...string) *link.Link {
	t.Helper()
	next := make(chan string, len(answers))
	for _, a := range answers {
		next <- a
	}
	return linkTo(t, func(conn *websocket.Conn) {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
		if answer := <-next; answer != "" {
			conn.WriteMessage(websocket.TextMessage, []byte(answer))
			conn.ReadMessage() // until the client has gone
		}
	})
}

// linkTo starts a daemon that uses each connection after its greeting.
func linkTo(t *testing.T, use func(*websocket.Conn)) *link.Link {
	t.Helper()
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		conn.ReadMessage() // hello
		conn.WriteMessage(websocket.TextMessage, []byte(ack))
		use(conn)
	}))
	t.Cleanup(daemon.Close)
	l := link.New(func(ctx context.Context, _ string) (*client.Client, error) {
		return client.Dial(ctx, client.Options{URL: "ws" + strings.TrimPrefix(daemon.URL, "http"), Token: "secret"})
	})
	t.Cleanup(l.Close)
	return l
}

// A model that hears that nothing ran may repeat the call: it hears that only where it is so.
func TestNothingRanIsSaidOnlyOfACallThatNoTryMayHaveStarted(t *testing.T) {
	t.Parallel()
	refusal := func(t string) string {
		return `{"message_type":"error_message","error_type":"` + t + `","message":"no","tool_call_id":"c1"}`
	}
	for _, c := range []struct {
		answers []string
		ran     bool // perhaps
	}{
		{[]string{refusal("duplicate_tool_call")}, false},
		{[]string{refusal("not_authorized")}, false},
		{[]string{refusal("internal_error")}, true},
		{[]string{"", refusal("duplicate_tool_call")}, true},
		{[]string{"", refusal("not_authorized")}, true},
		{[]string{"", refusal("internal_error")}, true},
		{[]string{"", ""}, true},
	} {
		l := serve(t, c.answers...)
		_, err := l.Call(t.Context(), "", client.Call{ID: "c1", Tool: "bash", Arguments: map[string]string{"command": "true"}}, func() client.Events { return client.Events{} })
		if err == nil || strings.Contains(err.Error(), "nothing ran") == c.ran || strings.Contains(err.Error(), "toold show c1") != c.ran {
			t.Errorf("after %q the model is told: %v", c.answers, err)
		}
	}
}

func TestTheCommandThatShowsALostCallCanBeCopied(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"c 1; id": "toold show 'c 1; id' (", "--all": "toold show -- --all ("} {
		_, err := serve(t, "", "").Call(t.Context(), "", client.Call{ID: id, Tool: "bash", Arguments: map[string]string{"command": "true"}}, func() client.Events { return client.Events{} })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the model is told: %v", err)
		}
	}
}

// A server may name as many directories as it wants.
func TestOnlyAFewConnectionsAreOpen(t *testing.T) {
	t.Parallel()
	called := make(chan struct{})
	l := linkTo(t, func(conn *websocket.Conn) {
		if _, frame, err := conn.ReadMessage(); err == nil && strings.Contains(string(frame), "tool_call_id") {
			called <- struct{}{}
			conn.ReadMessage()
		}
	})
	// Ends with the link; it runs all the while.
	calling := make(chan error, 1)
	go func() {
		_, err := l.Call(t.Context(), "busy", client.Call{ID: "c1", Tool: "bash", Arguments: map[string]string{"command": "true"}}, func() client.Events { return client.Events{} })
		calling <- err
	}()
	<-called
	var all []*client.Client
	for i := range 200 {
		c, err := l.Get(t.Context(), fmt.Sprint("/w/", i))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := l.Get(t.Context(), fmt.Sprint("/w/", i)); again != c || err != nil {
			t.Fatalf("the connection of a directory was made again: %v", err)
		}
		all = append(all, c)
	}
	open := slices.DeleteFunc(all, func(c *client.Client) bool {
		select {
		case <-c.Done():
			return true
		default:
			return false
		}
	})
	if len(open) > 16 {
		t.Errorf("%d connections are open", len(open))
	}
	select {
	case err := <-calling:
		t.Errorf("the connection of a call was closed: %v", err)
	default:
	}
}
