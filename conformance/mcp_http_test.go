//go:build linux

package conformance

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/client"
)

// eachVersion runs a test in both versions of the protocol.
func eachVersion(t *testing.T, run func(t *testing.T, c *mcpClient, version string)) {
	t.Parallel()
	bin := daemonOrSkip(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			run(t, newCarefulSite(t, bin), version)
		})
	}
}

// Who may request a call may not approve it: with the token of an agent no form counts, and
// the call waits for a person elsewhere.
func TestMCPOverHTTPAFormIsNoYesOfAnAgent(t *testing.T) {
	eachVersion(t, func(t *testing.T, c *mcpClient, version string) {
		c.connect(c.endpoint("agent"), version)
		c.answers = func(*mcp.ElicitParams) *mcp.ElicitResult {
			t.Error("the client was asked")
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}
		}
		if text := c.tries("rm -rf work"); !c.has("work") || !strings.Contains(text, "denied") && !strings.Contains(text, "No one") {
			t.Errorf("with no one to decide: %q", text)
		}
		yes, err := approver(t.Context(), c.daemon)
		if err != nil {
			t.Fatal(err)
		}
		defer yes.close()
		if text := c.tries("rm -rf work"); c.has("work") {
			t.Errorf("after a person's yes: %q", text)
		}
	})
}

// TestMCPOverHTTPALostClient cuts the connections of a client while a call runs and another
// waits for its user. What can still be answered, by a request of its own, waits.
func TestMCPOverHTTPALostClient(t *testing.T) {
	eachVersion(t, func(t *testing.T, c *mcpClient, version string) {
		wire := &cutter{}
		to := c.endpoint("agent-approver")
		to.HTTPClient.Transport = bearer{c.daemon.tokens["agent-approver"], &http.Transport{DialContext: wire.dial}}
		c.connect(to, version)
		asked, answer := make(chan struct{}), make(chan struct{})
		c.answers = func(*mcp.ElicitParams) *mcp.ElicitResult {
			close(asked)
			<-answer
			return &mcp.ElicitResult{Action: "cancel"}
		}
		var calls sync.WaitGroup
		for _, command := range []string{"touch started; sleep 1000", "rm -rf work"} {
			calls.Go(func() { c.tries(command) })
		}
		<-asked
		c.waitsFor("started")
		wire.cut()
		left := map[string]int{"2025-11-25": 0, "2026-07-28": 1}[version]
		c.hasCalls(left)
		close(answer)
		calls.Wait()
	})
}

// hasCalls waits until a number of calls run or wait.
func (c *mcpClient) hasCalls(want int) {
	c.Helper()
	agent, err := client.Dial(c.Context(), client.Options{URL: c.daemon.ws, Token: c.daemon.tokens["agent-approver"]})
	if err != nil {
		c.Fatal(err)
	}
	defer agent.Close()
	eventually(c.T, "the calls have ended", func() bool {
		list, err := agent.ListCalls(c.Context(), "", false)
		return err == nil && len(list) == want
	})
}

// TestMCPOverHTTPASessionEnds has the client end its session, and the daemon end, while a
// call runs and another waits.
func TestMCPOverHTTPASessionEnds(t *testing.T) {
	eachVersion(t, func(t *testing.T, c *mcpClient, version string) {
		c.overHTTP(version)
		asked, answer := make(chan struct{}), make(chan struct{})
		c.answers = func(*mcp.ElicitParams) *mcp.ElicitResult {
			close(asked)
			<-answer
			return &mcp.ElicitResult{Action: "cancel"}
		}
		var calls sync.WaitGroup
		for _, command := range []string{"touch started; sleep 1000", "rm -rf work"} {
			calls.Go(func() { c.tries(command) })
		}
		<-asked
		c.waitsFor("started")
		if id := c.session.ID(); id != "" {
			if status := c.request(http.MethodDelete, map[string]string{"Mcp-Session-Id": id}); status != http.StatusNoContent {
				t.Errorf("the end of the session: %d", status)
			}
			c.hasCalls(0)
		}
		if err := c.daemon.stop(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		close(answer)
		calls.Wait()
	})
}

// request sends a request to /mcp and returns the status of the answer.
func (c *mcpClient) request(method string, header map[string]string) int {
	c.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	if method != http.MethodPost {
		body = ""
	}
	r, err := http.NewRequestWithContext(c.Context(), method, c.daemon.http+"/mcp", strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + c.daemon.tokens["agent-approver"], "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
		r.Header.Set(name, value)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	r.Host = r.Header.Get("Host")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		c.Fatal(err)
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// TestMCPOverHTTPIsGuarded sends what may not come in, and more sessions than may be.
func TestMCPOverHTTPIsGuarded(t *testing.T) {
	t.Parallel()
	c := newCarefulSite(t, daemonOrSkip(t))
	c.overHTTP("2025-11-25")
	bearer := func(token string) string { return "Bearer " + c.daemon.tokens[token] }
	for name, test := range map[string]struct {
		header map[string]string
		want   int
	}{
		"a client":                      {nil, http.StatusOK},
		"no token":                      {map[string]string{"Authorization": "Bearer x"}, http.StatusUnauthorized},
		"a token of no agent":           {map[string]string{"Authorization": bearer("observer")}, http.StatusForbidden},
		"a foreign page":                {map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
		"a page with a rebound name":    {map[string]string{"Host": "evil.example", "Origin": "http://evil.example"}, http.StatusForbidden},
		"a session that does not exist": {map[string]string{"Mcp-Session-Id": "x"}, http.StatusNotFound},
		"the session of another token":  {map[string]string{"Mcp-Session-Id": c.session.ID(), "Authorization": bearer("agent")}, http.StatusForbidden},
	} {
		if got := c.request(http.MethodPost, test.header); got != test.want {
			t.Errorf("%s: %d, expected %d", name, got, test.want)
		}
	}
	refused := false
	for range 64 { // limits.connections
		refused = refused || c.request(http.MethodPost, map[string]string{"Authorization": bearer("agent")}) == http.StatusServiceUnavailable
	}
	if !refused {
		t.Error("a token may have any number of sessions")
	}
	if text := c.tries("echo on"); text != "on\n" {
		t.Errorf("beside them: %q", text)
	}
}

// cutter makes connections, and ends them all at once.
type cutter struct {
	mu    sync.Mutex
	conns []net.Conn
	after bool
}

func (c *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.after {
		return nil, io.ErrClosedPipe
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after = true
	for _, conn := range c.conns {
		conn.Close()
	}
}
