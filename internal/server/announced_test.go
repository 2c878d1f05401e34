package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
)

// announce begins a request whose body never comes. It returns when the server awaits the body, with what it reads the
// answer from.
func announce(t *testing.T, addr, path string, bytes int64) *bufio.Reader {
	t.Helper()
	conn := must.Get(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { conn.Close() })
	must.Do(t, conn.SetReadDeadline(time.Now().Add(5*time.Minute))) // a guard against a server that waits for ever
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", path, agentSecret, bytes)
	answer := bufio.NewReader(conn)
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("the body is not awaited: %q, %v", line, err)
	}
	return answer
}

func TestABodyThatIsOnlyAnnouncedTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, func(o *Options) { o.IncomingBytes = 1 << 20 })
	announce(t, ts.Listener.Addr().String(), "/v1/calls", 1<<20)
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, `{"message_type":"ping","nonce":"1","padding":"`+strings.Repeat("x", 200<<10)+`"}`)
	if frame := read(t, conn); !strings.Contains(frame, `"pong"`) {
		t.Errorf("a ping of 200 KiB got %.200s", frame)
	}
}

func TestABodyThatDoesNotComeIsGivenUp(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, func(o *Options) { o.Idle = 50 * time.Millisecond })
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }() // ends with the listener
	t.Cleanup(func() { l.Close(); <-served })
	for _, path := range []string{"/v1/calls", "/mcp", "/approvals/approval-1"} {
		rest, err := io.ReadAll(announce(t, l.Addr().String(), path, 1000))
		if text := string(rest); err != nil || !strings.Contains(text, http.StatusText(http.StatusBadRequest)) && !strings.Contains(text, http.StatusText(http.StatusUnauthorized)) {
			t.Errorf("%s: %q, %v", path, rest, err)
		}
	}
}
