package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

func TestACancelThatComesFirstHolds(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	early, late := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
	write(t, early, `{"message_type":"cancel","tool_call_id":"call_1"}`)
	if e, _ := until(t, early, "not_running"); !strings.Contains(e, "answered as cancelled") {
		t.Errorf("the cancel got %s", e)
	}
	write(t, late, call("call_1"))
	ret, before := until(t, late, "tool_return_message")
	if !strings.Contains(ret, `"error_type":"cancelled"`) || !strings.Contains(ret, `"cause":"cancel"`) {
		t.Errorf("the call got %s", ret)
	}
	none(t, before, "tool_started")
	// Once it is answered there is nothing more to cancel, and another id runs.
	write(t, early, `{"message_type":"cancel","tool_call_id":"call_1"}`)
	if e, _ := until(t, early, "not_running"); strings.Contains(e, "answered as cancelled") {
		t.Errorf("a cancel after the end got %s", e)
	}
	if ret := made(t, late, "call_2"); !strings.Contains(ret, `"status":"success"`) {
		t.Errorf("another call got %s", ret)
	}
}

// An approver's cancel of an unknown id is no agent's, so it early cancels nothing.
func TestOnlyAnAgentCancelsItsOwnIDsEarly(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	person, agent := dialAs(t, ts, approverSecret), dialAs(t, ts, agentSecret)
	write(t, person, `{"message_type":"cancel","tool_call_id":"call_1"}`)
	until(t, person, "not_running")
	if ret := made(t, agent, "call_1"); !strings.Contains(ret, `"status":"success"`) {
		t.Errorf("the call got %s", ret)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, func(o *Options) { o.Connections = 1 })
	first := dialAs(t, ts, agentSecret)
	pinged(t, first)
	_, res, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(ts.URL, "http")+"/v1/ws",
		http.Header{"Authorization": {"Bearer " + agentSecret}})
	if err == nil || res == nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("a second connection got %v, %v", res, err)
	}
	pinged(t, first)
}

// TestPlacesAreKeptForThoseWhoDecide fills a daemon with agents and observers.
func TestPlacesAreKeptForThoseWhoDecide(t *testing.T) {
	t.Parallel()
	const all = 256
	token := func(name string, role Role) Token {
		return Token{Name: name, Secret: strings.Repeat(name+"-", 8), Roles: []Role{role}}
	}
	observer, agent, approver, admin := token("observer", Observer), token("agent-2", Agent), token("approver", Approver), token("owner", Admin)
	_, ts := newTestServer(t, func(o *Options) {
		o.Connections = all
		o.Tokens = also(o.Tokens, observer, agent, approver, admin)
	})
	fill := func(who Token) (n int) {
		for ; ; n++ {
			conn, res, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(ts.URL, "http")+"/v1/ws",
				http.Header{"Authorization": {"Bearer " + who.Secret}})
			if err != nil {
				if res == nil || res.StatusCode != http.StatusServiceUnavailable {
					t.Fatalf("%s number %d: %v, %v", who.Name, n, res, err)
				}
				return n
			}
			t.Cleanup(func() { conn.Close() })
			pinged(t, conn)
		}
	}
	if n := fill(observer); n != 180 { // three quarters of 240
		t.Errorf("one observer took %d places of %d", n, all)
	}
	if n := fill(agent); n != 60 {
		t.Errorf("the agents got %d places of %d", n, all)
	}
	if n := fill(observer); n != 0 {
		t.Errorf("the observer got %d places more", n)
	}
	if n := fill(approver) + fill(admin); n != 16 {
		t.Errorf("%d places were kept, want 16", n)
	}
}

// A client makes requests that wait.
func TestRequestsThatWaitAreLimited(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	_, ts := newTestServer(t, func(o *Options) {
		o.Connections = 4
		o.Tokens = also(o.Tokens, Token{Name: "other", Secret: observerSecret, Roles: []Role{Agent}}, Token{Name: "approver", Secret: approverSecret, Roles: []Role{Approver}})
		o.MCP = func(w http.ResponseWriter, _ *http.Request, _ Token) {
			begun <- struct{}{}
			<-end
			w.WriteHeader(http.StatusNoContent)
		}
	})
	release := sync.OnceFunc(func() { close(end) })
	t.Cleanup(release)
	const most = 4 * 2 // four for each connection, of which the token may have three quarters of three
	answered := make(chan int, most)
	for range most {
		go func() {
			status, _ := ask(t, ts, "POST", "/mcp", `{}`)
			answered <- status
		}()
		<-begun
	}
	if status, body := ask(t, ts, "POST", "/v1/calls", `{}`); status != http.StatusServiceUnavailable || !strings.Contains(body, "limits.connections") {
		t.Errorf("one more request was answered %d %s", status, body)
	}
	pinged(t, dialAs(t, ts, agentSecret))
	pinged(t, dialAs(t, ts, observerSecret))
	pinged(t, dialAs(t, ts, approverSecret))
	release()
	for range most {
		if status := <-answered; status != http.StatusNoContent {
			t.Errorf("a request was answered %d", status)
		}
	}
	if status, body := ask(t, ts, "POST", "/v1/calls", `{}`); status == http.StatusServiceUnavailable {
		t.Errorf("afterwards a request is answered %d %s", status, body)
	}
}

// sendHalf sends the beginning of a frame and returns when the server has read it.
func sendHalf(t *testing.T, conn *websocket.Conn, text string) {
	t.Helper()
	half, err := conn.NextWriter(websocket.TextMessage)
	must.Do(t, err)
	pong := make(chan string, 1)
	conn.SetPongHandler(func(data string) error { pong <- data; return nil })
	// Ends when the connection does.
	go conn.ReadMessage()
	_, err = half.Write([]byte(text))
	must.Do(t, errors.Join(err, conn.WriteControl(websocket.PingMessage, nil, time.Time{})))
	<-pong // it came in the middle of the frame
}

func TestFramesBeingReceivedAreLimitedTogether(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, func(o *Options) { o.IncomingBytes = 2 << 20 })
	greedy, modest := dialAs(t, ts, agentSecret), dialAs(t, ts, agentSecret)
	big := `{"message_type":"ping","nonce":"big","padding":"` + strings.Repeat("x", 900<<10) + `"}`
	write(t, modest, big, `{"message_type":"ping","nonce":"small"}`)
	until(t, modest, "small") // what the big frame took is free again
	sendHalf(t, greedy, big[:700<<10])
	pinged(t, modest)
	modest.WriteMessage(websocket.TextMessage, []byte(big)) // refused before all of it is sent
	if _, _, err := modest.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseTryAgainLater) {
		t.Errorf("it was closed with %v", err)
	}
	greedy.Close()
	again := dialAs(t, ts, agentSecret)
	pinged(t, again)
}

// A client sends the beginnings of large frames, and nothing more: another client can send such frames meanwhile.
func TestStalledFramesOfAClientLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, func(o *Options) {
		o.IncomingBytes = 8 << 20
		o.Tokens = also(o.Tokens, Token{Name: "other", Secret: observerSecret, Roles: []Role{Agent}})
	})
	other := dialAs(t, ts, observerSecret)
	big := `{"message_type":"ping","nonce":"big","padding":"` + strings.Repeat("x", 900<<10) + `"}`
	refused := 0
	for range 12 {
		half := dialAs(t, ts, agentSecret)
		w := must.Get(half.NextWriter(websocket.TextMessage))(t)
		w.Write([]byte(big[:700<<10]))
		half.WriteControl(websocket.PingMessage, nil, time.Time{})
		pong := errors.New("pong")
		half.SetPongHandler(func(string) error { return pong })
		if _, _, err := half.ReadMessage(); !errors.Is(err, pong) {
			refused++
		}
	}
	if refused == 0 {
		t.Error("all frames of the client are received at once")
	}
	for range 3 {
		write(t, other, big, `{"message_type":"ping","nonce":"small"}`)
		until(t, other, "small")
	}
}

// TestRequestsTakeTheirTurnByToken has one token flood the only place for running calls:
// the call of another is the next but one.
func TestRequestsTakeTheirTurnByToken(t *testing.T) {
	t.Parallel()
	const otherSecret = "other-secret-other-secret-other-secret"
	started, end := make(chan struct{}), make(chan struct{})
	ts := newLimitedServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
		for _, step := range []chan struct{}{started, end} {
			select {
			case step <- struct{}{}:
			case <-ctx.Done(): // the test is over
			}
		}
		return hello(ctx, io)
	}, func(l *dispatch.Limits, _ *Options) { l.Concurrent = 1 }, func(o *Options) {
		o.Tokens = also(o.Tokens, Token{Name: "other", Secret: otherSecret, Roles: []Role{Agent}})
	})
	ask := func(method, secret, path, body string) int {
		t.Helper()
		r := must.Get(http.NewRequestWithContext(t.Context(), method, ts.URL+path, strings.NewReader(body)))(t)
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("Content-Type", "application/json")
		res := must.Get(http.DefaultClient.Do(r))(t)
		res.Body.Close()
		return res.StatusCode
	}
	watcher := dialAs(t, ts, approverSecret)
	waiting := 0
	queued := func(secret, id string) {
		t.Helper()
		waiting++
		if status := ask("POST", secret, "/v1/calls?wait=0", call(id)); status != http.StatusAccepted {
			t.Fatalf("%s: status %d", id, status)
		}
		for in := 0; in < waiting; { // the answer does not wait for it
			write(t, watcher, `{"message_type":"list_calls","request_id":"q"}`)
			in = strings.Count(read(t, watcher), `"state":"queued"`)
		}
	}
	ask("POST", agentSecret, "/v1/calls?wait=0", call("first"))
	<-started
	for i := range 5 {
		queued(agentSecret, fmt.Sprintf("flood-%d", i))
	}
	queued(otherSecret, "mine")
	for range 3 { // first, flood-0, mine
		<-end
		<-started
	}
	if status := ask("GET", otherSecret, "/v1/calls/mine?wait=300000", ""); status != http.StatusOK {
		t.Errorf("the call of the other token has not run: status %d", status)
	}
}

// A request is in memory until it is answered, so those together are bounded, whichever way they came.
func TestRequestsThatAreNotAnsweredAreLimitedTogether(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	ts := newLimitedServer(t, policy.Allow, func(context.Context, tools.IO) tools.Result {
		close(begun)
		<-end
		return tools.Result{Text: "ok"}
	}, func(*dispatch.Limits, *Options) {}, func(o *Options) {
		o.IncomingBytes, o.MaxFrameBytes = 4<<20, 4<<20
		o.MCP = func(w http.ResponseWriter, _ *http.Request, _ Token) { w.WriteHeader(http.StatusNoContent) }
	})
	large := call("call_1") + strings.Repeat(" ", 1500<<10)
	first := make(chan int, 1)
	go func() {
		status, _ := ask(t, ts, "POST", "/v1/calls", large)
		first <- status
	}()
	<-begun
	for _, path := range []string{"/v1/calls", "/mcp"} {
		status, body := ask(t, ts, "POST", path, strings.Repeat(" ", 1500<<10)+`{}`)
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "not answered yet") {
			t.Errorf("%s answered %d %s", path, status, body)
		}
	}
	close(end)
	if status := <-first; status != http.StatusOK {
		t.Errorf("the first request got %d", status)
	}
	if status, body := ask(t, ts, "POST", "/mcp", strings.Repeat(" ", 1500<<10)+`{}`); status != http.StatusNoContent {
		t.Errorf("afterwards /mcp answered %d %s", status, body)
	}
}

// The SDK keeps several copies of a request to /mcp, which count.
func TestARequestOfMCPCountsWithItsCopies(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	_, ts := newTestServer(t, func(o *Options) {
		o.IncomingBytes = 2 << 20
		o.MCP = func(w http.ResponseWriter, r *http.Request, _ Token) {
			if n, err := io.Copy(io.Discard, r.Body); n < 1000 || err != nil {
				t.Errorf("read %d bytes, %v", n, err)
			}
			begun <- struct{}{}
			<-end
			w.WriteHeader(http.StatusNoContent)
		}
	})
	body := strings.Repeat(" ", 200<<10) + `{}`
	answered := make(chan int, 2)
	post := func(body string) {
		status, _ := ask(t, ts, "POST", "/mcp", body)
		answered <- status
	}
	go post(body)
	<-begun
	go post(body)
	select {
	case status := <-answered:
		if status != http.StatusServiceUnavailable {
			t.Errorf("beside a request of 200 KiB, another was answered %d", status)
		}
	case <-begun:
		t.Error("another request of 200 KiB began beside it")
		end <- struct{}{}
		<-answered
	}
	go post(strings.Repeat(" ", 1000)) // small ones go on
	<-begun
	close(end)
	for range 2 {
		if status := <-answered; status != http.StatusNoContent {
			t.Errorf("a request was answered %d", status)
		}
	}
}
