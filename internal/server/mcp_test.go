package server

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
)

// An answer may take long, but a client that does not read it is given up.
func TestAnAnswerThatIsNotReadIsGivenUp(t *testing.T) {
	t.Parallel()
	ended := make(chan error)
	_, ts := newTestServer(t, func(o *Options) {
		o.Idle = 50 * time.Millisecond
		o.MCP = func(w http.ResponseWriter, _ *http.Request, who Token) {
			if who.Name != "agent" {
				t.Errorf("the token is %q", who.Name)
			}
			_, err := io.Copy(w, strings.NewReader(strings.Repeat("x", 64<<20)))
			ended <- err
		}
	})
	conn := must.Get(net.Dial("tcp", strings.TrimPrefix(ts.URL, "http://")))(t)
	defer conn.Close()
	must.Get(io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+agentSecret+"\r\nContent-Length: 2\r\n\r\n{}"))(t)
	if err := <-ended; err == nil {
		t.Error("all of an answer was written to a client that does not read")
	}
}
