//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// appServer speaks as Letta Code 0.32.18 does when `toold letta` connects. Each connection is
// given to the test when it is set up.
type appServer struct {
	*testing.T
	*httptest.Server
	ready chan *appConn
	early sync.Once
}

type appConn struct {
	*testing.T
	ws     *websocket.Conn
	frames chan map[string]any // that answer nothing of the setting up
	tools  []string
}

// lettaRuntime is the conversation.
func lettaRuntime() map[string]any {
	return map[string]any{"agent_id": "agent-1", "conversation_id": "default"}
}

func newAppServer(t *testing.T) *appServer {
	t.Helper()
	s := &appServer{T: t, ready: make(chan *appConn, 8)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var up websocket.Upgrader
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		(&appConn{T: t, ws: ws, frames: make(chan map[string]any, 64)}).serve(s)
	}))
	t.Cleanup(s.Close)
	return s
}

func (c *appConn) serve(s *appServer) {
	defer close(c.frames)
	status := func(mode string) {
		c.ws.WriteJSON(map[string]any{"type": "update_device_status", "runtime": lettaRuntime(), "device_status": map[string]any{"current_permission_mode": mode}})
	}
	for {
		var f map[string]any
		if c.ws.ReadJSON(&f) != nil {
			return
		}
		answer := map[string]any{"type": fmt.Sprint(f["type"]) + "_response", "request_id": f["request_id"], "success": true}
		switch f["type"] {
		case "app_server_info":
			answer["protocol_version"], answer["capabilities"] = 1, map[string]any{"runtime_external_tools_update": true}
			answer["letta_code_version"] = "0.32.18"
		case "agent_list":
			answer["agents"] = []any{map[string]any{"id": "agent-1", "name": "a"}}
		case "sync":
			status("standard")
		case "change_device_state":
			status(fmt.Sprint(f["payload"].(map[string]any)["mode"]))
			continue
		case "runtime_external_tools_update":
			text, _ := json.Marshal(f)
			for _, name := range []string{"bash", "read_file", "apply_patch"} {
				if strings.Contains(string(text), `"name":"`+name+`"`) {
					c.tools = append(c.tools, name)
				}
			}
			// A tool of the name of one of toold's, which the server has not taken yet.
			s.early.Do(func() {
				c.mayUse("c0", "read_file", map[string]any{"file_path": "~/.ssh/id_rsa"})
				c.frames <- c.read()
			})
			c.ws.WriteJSON(answer)
			s.ready <- c
			continue
		default:
			c.frames <- f
			continue
		}
		c.ws.WriteJSON(answer)
	}
}

func (c *appConn) read() (f map[string]any) {
	c.ws.ReadJSON(&f)
	return f
}

func (c *appConn) send(f map[string]any) {
	c.Helper()
	if err := c.ws.WriteJSON(f); err != nil {
		c.Fatal(err)
	}
}

// call has the model use a tool of toold.
func (c *appConn) call(id, command string) {
	c.Helper()
	c.send(map[string]any{
		"type": "external_tool_call_request", "request_id": "r-" + id, "runtime": lettaRuntime(),
		"tool_call_id": id, "tool_name": "bash", "input": map[string]any{"command": command},
	})
}

// executing says which calls the server waits for.
func (c *appConn) executing(ids ...string) {
	c.Helper()
	c.send(map[string]any{"type": "update_loop_status", "runtime": lettaRuntime(), "loop_status": map[string]any{
		"status": "EXECUTING_CLIENT_SIDE_TOOL", "executing_tool_call_ids": slices.Concat([]string{}, ids),
	}})
}

// mayUse asks whether a tool of Letta Code's own may be used.
func (c *appConn) mayUse(id, tool string, input map[string]any) {
	c.Helper()
	c.send(map[string]any{
		"type": "control_request", "request_id": "perm-" + id, "agent_id": "agent-1", "conversation_id": "default",
		"request": map[string]any{"subtype": "can_use_tool", "tool_name": tool, "tool_call_id": id, "input": input},
	})
}

// next returns the next frame of toold as text.
func (c *appConn) next() string {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	select {
	case f, ok := <-c.frames:
		if !ok {
			c.Fatal("the connection has ended")
		}
		text, _ := json.Marshal(f)
		return string(text)
	case <-ctx.Done():
		c.Fatal("toold sent nothing")
		return ""
	}
}

func TestTheAppServerOfLettaCodeIsServed(t *testing.T) {
	t.Parallel()
	bin := daemonOrSkip(t)
	site := newCarefulSite(t, bin)
	server := newAppServer(t)
	bridge := exec.Command(bin, "connect", "letta", "--url", "ws"+strings.TrimPrefix(server.URL, "http"), "-C", site.site.workspace, "--state-dir", site.site.state, "--config", site.site.config)
	bridge.Env = []string{"HOME=" + site.site.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	startProgram(t, bridge)
	c := <-server.ready
	if !slices.Equal(c.tools, []string{"bash", "read_file"}) {
		t.Errorf("of bash, read_file and apply_patch, which Letta Code has itself, the server got %v", c.tools)
	}
	if got := c.next(); !strings.Contains(got, "perm-c0") || !strings.Contains(got, `"deny"`) {
		t.Errorf("the question before toold's tools were taken was answered with %s", got)
	}
	c.call("c1", "echo hello")
	if got := c.next(); !strings.Contains(got, `"is_error":false`) || !strings.Contains(got, "hello") {
		t.Errorf("a call returned %s", got)
	}
	c.call("c2", "sleep 1000")
	c.executing("c2")
	c.executing()
	if got := c.next(); !strings.Contains(got, `"is_error":true`) || !strings.Contains(got, "r-c2") {
		t.Errorf("an interrupted call returned %s", got)
	}
	c.mayUse("c3", "bash", map[string]any{"command": "ls"})
	if got := c.next(); !strings.Contains(got, `"allow"`) {
		t.Errorf("the question about a tool of toold was answered with %s", got)
	}
	c.mayUse("c4", "Read", map[string]any{"file_path": site.site.home + "/.ssh/id_rsa"})
	if got := c.next(); !strings.Contains(got, `"deny"`) {
		t.Errorf("the question about a secret was answered with %s", got)
	}
	answersWhatWaits(t, site, server, c)
}

// answersWhatWaits loses the connection while a person is asked.
func answersWhatWaits(t *testing.T, site *mcpClient, server *appServer, c *appConn) {
	t.Helper()
	person, err := client.Dial(t.Context(), client.Options{URL: site.daemon.ws, Token: site.daemon.tokens["approver"]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	asked := make(chan message.ApprovalRequest, 8)
	go person.Approvals(t.Context(), client.ApprovalEvents{Requested: func(r message.ApprovalRequest) { asked <- r }})
	push := map[string]any{"command": "git push"}
	c.mayUse("c5", "Bash", push)
	question := <-asked
	c.ws.Close()
	c = <-server.ready
	c.mayUse("c5", "Bash", push)
	c.call("c6", "echo still here")
	if got := c.next(); !strings.Contains(got, "still here") {
		t.Errorf("after a reconnection a call returned %s", got)
	}
	if _, err := person.Decide(t.Context(), client.Decision{ApprovalID: question.ID, Approve: true}); err != nil {
		t.Fatal(err)
	}
	if got := c.next(); !strings.Contains(got, `"perm-c5"`) || !strings.Contains(got, `"allow"`) {
		t.Errorf("the question that waited was answered with %s", got)
	}
	if len(asked) > 0 {
		t.Errorf("the person was asked twice")
	}
}
