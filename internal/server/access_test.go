package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
)

const agentSecret = "agent-secret-agent-secret-agent-secret"

// greet greets in every workspace but one.
func greet(dir string) (message.HelloAck, error) {
	if dir == "/unregistered" || dir == "/src/app/link" {
		return message.HelloAck{Workspace: "/unregistered"}, &workspaces.UnregisteredError{Dir: "/unregistered"}
	}
	return message.HelloAck{Protocol: 1, Workspace: dir}, nil
}

// newTestServer returns a server that has no calls to serve. What changes later, changes
// it once it is made.
func newTestServer(t testing.TB, change func(*Options), later ...func(*Options)) (*Server, *httptest.Server) {
	t.Helper()
	opt := Options{
		Approvals: approval.New[message.ApprovalRequest](), Log: zap.NewNop(),
		Tokens:      also(nil, Token{Name: "agent", Secret: agentSecret, Roles: []Role{Agent}}, Token{Name: "empty", Roles: []Role{Admin}}),
		Greet:       greet,
		Connections: 20, IncomingBytes: 64 << 20,
		MaxFrameBytes: 1 << 20, OutboxBytes: 1 << 20, CallsPerConnection: 10, Ping: time.Minute, Idle: time.Hour, Linger: time.Hour,
		AllowedHosts: []string{"toold.example"}, AllowedOrigins: []string{"https://console.example"},
	}
	if change != nil {
		change(&opt)
	}
	if opt.Dispatch == nil {
		j := must.Get(journal.Open(t.Context(), t.TempDir(), journal.Self()))(t)
		t.Cleanup(func() { j.Close() })
		opt.Dispatch = dispatch.New(dispatch.Options{Journal: j})
	}
	s := New(opt)
	for _, change := range later {
		change(&s.opt)
	}
	ts := httptest.NewServer(s.handler())
	t.Cleanup(ts.Close)
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return s, ts
}

// also returns more tokens.
func also(tokens func() []Token, more ...Token) func() []Token {
	if tokens != nil {
		more = append(tokens(), more...)
	}
	return func() []Token { return slices.Clone(more) }
}

func get(t *testing.T, url string, header map[string]string) *http.Response {
	t.Helper()
	return request(t, http.MethodGet, url, header)
}

func request(t *testing.T, method, url string, header map[string]string) *http.Response {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), method, url, nil))(t)
	for name, value := range header {
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	res := must.Get(http.DefaultClient.Do(req))(t)
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func TestEveryRouteHasAnAccessCheck(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, nil)
	open := map[string]bool{"GET /healthz": true, "GET /readyz": true, "GET /approvals/{id}": true}
	for _, r := range routes() {
		if r.access == nil {
			t.Errorf("%s has no access check", r.pattern)
			continue
		}
		method, path, _ := strings.Cut(r.pattern, " ")
		res := request(t, method, ts.URL+path, nil)
		if admitted := res.StatusCode == http.StatusOK; admitted != open[r.pattern] {
			t.Errorf("%s without a token: %s", r.pattern, res.Status)
		}
	}
}

func TestHostAndOriginAreCheckedBeforeTheToken(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, nil)
	bearer := "Bearer " + agentSecret
	for name, c := range map[string]struct {
		header map[string]string
		want   int
	}{
		"loopback":               {nil, http.StatusOK},
		"a listed host":          {map[string]string{"Host": "toold.example:7717"}, http.StatusOK},
		"IPv6 loopback":          {map[string]string{"Host": "[::1]:7717"}, http.StatusOK},
		"another host":           {map[string]string{"Host": "evil.example"}, http.StatusForbidden},
		"a rebinding page":       {map[string]string{"Host": "evil.example", "Origin": "http://evil.example", "Authorization": bearer}, http.StatusForbidden},
		"a foreign page":         {map[string]string{"Origin": "https://evil.example", "Authorization": bearer}, http.StatusForbidden},
		"an opaque origin":       {map[string]string{"Origin": "null"}, http.StatusForbidden},
		"a listed page":          {map[string]string{"Origin": "https://console.example"}, http.StatusOK},
		"a suffix of our name":   {map[string]string{"Host": "evil-toold.example"}, http.StatusForbidden},
		"our name as subdomain":  {map[string]string{"Host": "localhost.evil.example"}, http.StatusForbidden},
		"a page of another port": {map[string]string{"Origin": "http://127.0.0.1:1"}, http.StatusForbidden},
	} {
		if res := get(t, ts.URL+"/healthz", c.header); res.StatusCode != c.want {
			t.Errorf("%s: got %s, want %d", name, res.Status, c.want)
		}
	}
}

func TestWrongTokensAreRefused(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, nil)
	for name, header := range map[string]http.Header{
		"none":               {},
		"wrong":              {"Authorization": {"Bearer wrong"}},
		"empty":              {"Authorization": {"Bearer "}},
		"right, but as user": {"Authorization": {"Basic " + agentSecret}},
		"a prefix":           {"Authorization": {"Bearer " + agentSecret[:10]}},
	} {
		_, res, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(ts.URL, "http")+"/v1/ws", header)
		if err == nil || res == nil || res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: got %v, %v; want 401", name, res, err)
		}
	}
}

// dial connects as the agent.
func dial(t *testing.T, ts *httptest.Server) *websocket.Conn {
	t.Helper()
	return dialAs(t, ts, agentSecret)
}

// read returns the next frame.
func read(t *testing.T, conn *websocket.Conn) string {
	t.Helper()
	_, frame, err := conn.ReadMessage()
	if err != nil {
		t.Fatalf("no frame: %v", err)
	}
	return string(frame)
}

func TestEveryBadFrameIsAnswered(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, nil)
	conn := dial(t, ts)
	for _, c := range []struct {
		kind  int
		frame string
		want  string
	}{
		{websocket.TextMessage, "{", `"invalid_frame"`},
		{websocket.TextMessage, "\xff", `"invalid_frame"`},
		{websocket.BinaryMessage, "{}", `"unsupported_frame"`},
		{websocket.TextMessage, `{"message_type":"telepathy"}`, `"unknown_message_type"`},
		{websocket.TextMessage, `{"message_type":"approval_response_message","approvals":[{"type":"approval","tool_call_id":"x","approve":true}]}`, `"not_authorized"`},
		{websocket.TextMessage, `{"message_type":"subscribe","request_id":"r1","topics":["calls"]}`, `"invalid_arguments"`},
		{websocket.TextMessage, `{"message_type":"ping","nonce":"n"}`, `"pong"`},
	} {
		must.Do(t, conn.WriteMessage(c.kind, []byte(c.frame)))
		if got := read(t, conn); !strings.Contains(got, c.want) {
			t.Errorf("%q was answered by %s, want %s", c.frame, got, c.want)
		}
	}
}

func TestHelloIsAnsweredWithRoles(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, nil)
	conn := dial(t, ts)
	for range 2 { // the greeting is not changed by being sent
		must.Do(t, conn.WriteMessage(websocket.TextMessage, []byte(`{"message_type":"hello","protocol":1}`)))
		if got := read(t, conn); !strings.Contains(got, `"roles":["agent"]`) {
			t.Errorf("got %s", got)
		}
	}
}

func TestAFloodOfBadFramesIsAnsweredAndEndsTheConnection(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, nil)
	conn := dial(t, ts)
	for range 20 * maxBadFrames { // what was sent to a client is not lost because it sends on
		if err := conn.WriteMessage(websocket.TextMessage, []byte("{")); err != nil {
			break
		}
	}
	for answers := 0; ; answers++ {
		_, _, err := conn.ReadMessage()
		if err == nil {
			continue
		}
		if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) || answers != maxBadFrames {
			t.Errorf("the connection ended with %v after %d answers, want 1008 after %d", err, answers, maxBadFrames)
		}
		return
	}
}

func TestAFrameOverTheLimitClosesWith1009(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ limit, size int }{{1000, 5000}, {1 << 20, 1<<20 + 1}, {16 << 20, 21 << 20}} {
		_, ts := newTestServer(t, func(o *Options) { o.MaxFrameBytes = int64(c.limit) })
		conn := dialAs(t, ts, agentSecret)
		frame := `{"message_type":"ping","request_id":"q","nonce":"` + strings.Repeat("x", c.size) + `"}`
		write(t, conn, frame[:c.limit-100]+`"}`, frame)
		limit := fmt.Sprintf("at most %d bytes (limits.max_frame_bytes)", c.limit)
		if e, _ := until(t, conn, limit); !strings.Contains(e, `"invalid_frame"`) {
			t.Errorf("%d bytes were answered by %.300s", c.size, e)
		}
		var closed *websocket.CloseError
		if _, _, err := conn.ReadMessage(); !errors.As(err, &closed) || closed.Code != websocket.CloseMessageTooBig || !strings.Contains(closed.Text, limit) {
			t.Errorf("%d bytes: the connection ended with %v, want 1009 and the limit", c.size, err)
		}
	}
}

func TestASilentPeerIsGivenUp(t *testing.T) {
	t.Parallel()
	var err error
	// On a busy machine a short time may be over before the server can say why it ends.
	for idle := 100 * time.Millisecond; idle < time.Minute; idle *= 4 {
		s, ts := newTestServer(t, func(o *Options) { o.Ping, o.Idle = idle/5, idle })
		conn := dial(t, ts)
		conn.SetPingHandler(func(string) error { return nil }) // answers no ping
		_, _, err = conn.ReadMessage()
		must.Do(t, s.Shutdown(t.Context()))
		var closed *websocket.CloseError
		if errors.As(err, &closed) && strings.Contains(closed.Text, "limits.idle") {
			return
		}
	}
	t.Errorf("a silent peer was given up with %v", err)
}

func TestShutdownSaysGoodbye(t *testing.T) {
	t.Parallel()
	s, ts := newTestServer(t, nil)
	conn := dialAs(t, ts, agentSecret)
	pinged(t, conn)
	stopped := make(chan error, 1)
	// Ends when the client has hung up.
	go func() { stopped <- s.Shutdown(t.Context()) }()
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the connection ended with %v, want 1001", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
