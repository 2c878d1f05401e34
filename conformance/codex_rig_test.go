//go:build linux

package conformance

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
)

// codexPolicy asks about one program, denies another and allows the rest.
const codexPolicy = `version: 1
defaults: {bash: allow, read: allow, write: allow, net: ask, unanalysable: ask}
commands:
  - {id: asked, decision: ask, run: ["mkdir **"]}
  - {id: no-push, decision: deny, run: ["git push **"], reason: use a branch}
paths:
  - {id: secrets, decision: deny, ops: [read, write], match: ["**/.env"]}
  - {id: private, decision: ask, ops: [read], match: ["**/private.bin"]}
`

// codexRig is a daemon whose clients speak as Codex does.
type codexRig struct {
	*rig
	approver *client.Client
}

func newCodexRig(t testing.TB) codexRig {
	t.Helper()
	r := newRig(t, nil)
	path := filepath.Join(filepath.Dir(r.site.config), "codex-policy.yaml")
	if err := os.WriteFile(path, []byte(codexPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.daemon.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.site.add(map[string]any{"policy": path}); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.daemon, err = startDaemon(t.Context(), r.program, r.site); err != nil {
		t.Fatal(err)
	}
	c := codexRig{rig: r}
	if c.approver, err = client.Dial(t.Context(), client.Options{URL: r.daemon.ws, Token: r.daemon.tokens["approver"]}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.approver.Close() })
	return c
}

// codexConn is one connection in the form of stock Codex 0.169.0.
type codexConn struct {
	t    testing.TB
	ws   *websocket.Conn
	next int

	mu     sync.Mutex
	frames []codexFrame
	more   chan struct{}
	over   bool
}

type codexFrame struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Params codexParams     `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
	} `json:"error"`
}

type codexParams struct {
	ProcessID string
	Seq       int
	Stream    string
	Chunk     []byte
	ExitCode  *int
}

// connect dials; session is one to resume, or "".
func (r codexRig) connect(t testing.TB, session string) (c *codexConn, id string) {
	t.Helper()
	url := strings.TrimSuffix(r.daemon.ws, "/v1/ws") + "/v1/codex"
	ws, _, err := websocket.DefaultDialer.DialContext(t.Context(), url, http.Header{"Authorization": {"Bearer " + r.daemon.tokens["agent"]}})
	if err != nil {
		t.Fatal(err)
	}
	c = newCodexConn(t, ws)
	var resume any
	if session != "" {
		resume = session
	}
	var hello struct {
		SessionID       string
		EnvironmentInfo struct {
			Cwd   string
			Shell struct{ Name, Path string }
		}
	}
	c.must("initialize", map[string]any{"clientName": "codex-environment", "resumeSessionId": resume}, &hello)
	if hello.SessionID == "" || hello.EnvironmentInfo.Cwd != "file://"+r.site.workspace || hello.EnvironmentInfo.Shell.Name != "bash" {
		t.Fatalf("initialize was answered with %+v", hello)
	}
	c.send(map[string]any{"method": "initialized", "params": map[string]any{}})
	return c, hello.SessionID
}

func newCodexConn(t testing.TB, ws *websocket.Conn) *codexConn {
	c := &codexConn{t: t, ws: ws, more: make(chan struct{})}
	read := make(chan struct{})
	go func() { defer close(read); c.read() }()
	t.Cleanup(func() { ws.Close(); <-read })
	return c
}

func (c *codexConn) read() {
	for {
		_, data, err := c.ws.ReadMessage()
		c.mu.Lock()
		var f codexFrame
		if err == nil && json.Unmarshal(data, &f) == nil {
			c.frames = append(c.frames, f)
		}
		c.over = err != nil
		close(c.more)
		c.more = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *codexConn) send(v any) {
	c.t.Helper()
	if err := c.ws.WriteJSON(v); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends a request and returns its id.
func (c *codexConn) ask(method string, params any) int {
	c.t.Helper()
	c.next++
	c.send(map[string]any{"id": c.next, "method": method, "params": params})
	return c.next
}

// await returns the first frame that is wanted.
func (c *codexConn) await(want func(codexFrame) bool) codexFrame {
	c.t.Helper()
	for {
		c.mu.Lock()
		for _, f := range c.frames {
			if want(f) {
				c.mu.Unlock()
				return f
			}
		}
		more, over := c.more, c.over
		c.mu.Unlock()
		if over {
			c.t.Fatalf("the connection ended; frames: %+v", c.frames)
		}
		select {
		case <-more:
		case <-c.t.Context().Done():
			c.t.Fatal("no such frame came")
		}
	}
}

func (c *codexConn) answer(id int) codexFrame {
	c.t.Helper()
	return c.await(func(f codexFrame) bool { return f.ID != nil && *f.ID == id })
}

// must asks and reads the result.
func (c *codexConn) must(method string, params, into any) {
	c.t.Helper()
	f := c.answer(c.ask(method, params))
	if f.Error != nil {
		c.t.Fatalf("%s was refused: %+v", method, *f.Error)
	}
	if into != nil {
		if err := json.Unmarshal(f.Result, into); err != nil {
			c.t.Fatalf("%s was answered with %s", method, f.Result)
		}
	}
}

// start is the params of a command, as Codex sends them.
func (r codexRig) start(id, script string, more map[string]any) map[string]any {
	p := map[string]any{
		"processId": id, "metadata": map[string]any{"threadId": "00000000-0000-7000-8000-000000000001", "toolCallId": "call_" + id},
		"argv": []string{"/bin/bash", "-lc", script}, "cwd": "file://" + r.site.workspace,
		"envPolicy": map[string]any{"inherit": "all", "ignoreDefaultExcludes": true, "exclude": []string{"CODEX_VERSION"}, "set": map[string]any{}, "includeOnly": []string{}},
		"env":       map[string]any{"CODEX_CI": "1", "TERM": "dumb"},
		"tty":       false, "pipeStdin": false, "arg0": nil, "sandbox": nil, "enforceManagedNetwork": false, "managedNetwork": nil,
	}
	for name, value := range more {
		p[name] = value
	}
	return p
}

// run runs a command to its end and returns its output by stream, and its exit code.
func (c *codexConn) run(params map[string]any) (output map[string]string, code int) {
	c.t.Helper()
	c.must("process/start", params, nil)
	return c.end(params["processId"].(string))
}

// end waits for the end of a process. The numbers of its frames have no gap.
func (c *codexConn) end(id string) (output map[string]string, code int) {
	c.t.Helper()
	c.await(func(f codexFrame) bool { return f.Method == "process/closed" && f.Params.ProcessID == id })
	c.mu.Lock()
	defer c.mu.Unlock()
	output, code = map[string]string{}, -1
	last := 0
	for _, f := range c.frames {
		if f.Method == "" || f.Params.ProcessID != id {
			continue
		}
		if last > 0 && f.Params.Seq != last+1 {
			c.t.Errorf("%s has the number %d after %d", f.Method, f.Params.Seq, last)
		}
		last = f.Params.Seq
		output[f.Params.Stream] += string(f.Params.Chunk)
		if f.Params.ExitCode != nil {
			code = *f.Params.ExitCode
		}
	}
	return output, code
}
