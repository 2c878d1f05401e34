//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
)

// mcpClient is a client of the Model Context Protocol.
type mcpClient struct {
	*testing.T
	site     *site
	daemon   *daemon
	server   *exec.Cmd // toold mcp; nil over HTTP
	session  *mcp.ClientSession
	page     bool                                      // the client has its user go to a page, and shows no forms
	answers  func(*mcp.ElicitParams) *mcp.ElicitResult // of the user; nil: no one is asked
	progress chan string                               // what the client was sent, as far as it has room
	results  map[string]*jsonschema.Resolved           // by tool: what its structured results must be
}

// eachMCP runs a test with the client of the official SDK, in both versions of the protocol
// and over both transports.
func eachMCP(t *testing.T, run func(t *testing.T, connect func(*mcpClient))) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for name, connect := range map[string]func(*mcpClient, string){"stdio": (*mcpClient).overStdio, "http": (*mcpClient).overHTTP} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				run(t, func(c *mcpClient) { connect(c, version) })
			})
		}
	}
}

// TestMCP plays the same turns each time.
func TestMCP(t *testing.T) {
	bin := daemonOrSkip(t)
	eachMCP(t, func(t *testing.T, connect func(*mcpClient)) {
		c := newCarefulSite(t, bin)
		connect(c)
		c.runs()
		c.printsMuch()
		c.refuses()
		c.asks()
		c.cancels()
		c.isBounded()
		c.losesTheDaemon()
	})
}

// TestMCPWhenTheDaemonIsKilled kills it while a command runs.
func TestMCPWhenTheDaemonIsKilled(t *testing.T) {
	bin := daemonOrSkip(t)
	eachMCP(t, func(t *testing.T, connect func(*mcpClient)) {
		c := newCarefulSite(t, bin)
		connect(c)
		ended := make(chan string)
		go func() { ended <- c.tries("touch started; sleep 1000; touch late") }()
		c.waitsFor("started")
		c.daemon.stop(syscall.SIGKILL)
		if text := <-ended; c.server != nil && !strings.Contains(text, "toold was lost") {
			t.Errorf("the model reads %q", text)
		}
		if text := c.tries("touch without"); c.server != nil && !strings.Contains(text, "nothing ran") {
			t.Errorf("without the daemon the model reads %q", text)
		}
		for _, name := range []string{"late", "without"} {
			if c.has(name) {
				t.Errorf("%s was made", name)
			}
		}
	})
}

// tries makes a call and returns what came of it, whatever that is.
func (c *mcpClient) tries(command string) string {
	r, err := c.session.CallTool(c.Context(), &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": command}})
	if err != nil {
		return err.Error()
	}
	return r.Content[0].(*mcp.TextContent).Text
}

func (c *mcpClient) has(name string) bool {
	_, err := os.Stat(filepath.Join(c.site.workspace, name))
	return err == nil
}

func (c *mcpClient) waitsFor(name string) {
	c.Helper()
	eventually(c.T, name+" is made", func() bool { return c.has(name) })
}

// newCarefulSite starts a daemon with the built-in policy, and no client yet.
func newCarefulSite(t *testing.T, bin string) *mcpClient {
	t.Helper()
	base := t.TempDir()
	s := &site{home: filepath.Join(base, "home"), workspace: filepath.Join(base, "ws"), ping: time.Minute, state: filepath.Join(base, "state"), config: filepath.Join(base, "config.yaml")}
	policy, err := filepath.Abs("../internal/config/careful.yaml")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := s.settings(setup{Limits: map[string]json.RawMessage{"connections": json.RawMessage("64")}, Roles: map[string][]string{"both": {"agent", "approver"}}}, policy)
	for _, dir := range []string{filepath.Join(s.home, ".ssh"), filepath.Join(s.workspace, "work")} {
		err = errors.Join(err, os.MkdirAll(dir, 0o700))
	}
	err = errors.Join(err, os.WriteFile(s.config, settings, 0o600), os.WriteFile(filepath.Join(s.workspace, "work", "a"), []byte("a"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	c := &mcpClient{T: t, site: s}
	if c.daemon, err = startDaemon(t.Context(), bin, s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.daemon.stop(syscall.SIGKILL) })
	return c
}

// overStdio has `toold mcp` as the server.
func (c *mcpClient) overStdio(version string) {
	c.Helper()
	c.server = exec.Command(c.daemon.cmd.Path, "mcp", "-C", c.site.workspace, "--state-dir", c.site.state, "--config", c.site.config)
	c.server.Env, c.server.Stderr = []string{"HOME=" + c.site.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, os.Stderr
	c.connect(&mcp.CommandTransport{Command: c.server}, version)
}

// overHTTP has the daemon as the server, with a token that may also decide: only with one
// of these does a form count.
func (c *mcpClient) overHTTP(version string) {
	c.Helper()
	c.connect(c.endpoint("agent-approver"), version)
}

// endpoint is /mcp with a token.
func (c *mcpClient) endpoint(token string) *mcp.StreamableClientTransport {
	return &mcp.StreamableClientTransport{
		Endpoint: c.daemon.http + "/mcp", MaxRetries: -1, HTTPClient: &http.Client{Transport: bearer{c.daemon.tokens[token], http.DefaultTransport}},
	}
}

// bearer adds a token to requests.
type bearer struct {
	token string
	over  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.over.RoundTrip(r)
}

func (c *mcpClient) connect(to mcp.Transport, version string) {
	c.Helper()
	c.progress = make(chan string, 1000)
	var can *mcp.ClientCapabilities
	if c.page {
		can = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}
	}
	peer := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "1"}, &mcp.ClientOptions{
		Capabilities: can,
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return c.answers(r.Params), nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			select {
			case c.progress <- r.Params.Message:
			default:
			}
		},
	})
	var err error
	if c.session, err = peer.Connect(c.Context(), to, &mcp.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { c.session.Close() })
	c.lists()
}

// call makes a call and returns what the model reads, and the structured result.
func (c *mcpClient) call(ctx context.Context, tool string, arguments map[string]any) (text string, got map[string]any, failed bool) {
	c.Helper()
	r, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		c.Fatalf("%s %v: %v", tool, arguments, err)
	}
	got, _ = r.StructuredContent.(map[string]any)
	if err := c.results[tool].Validate(got); err != nil {
		c.Errorf("%s %v: the structured result is not as its schema says: %v", tool, arguments, err)
	}
	return r.Content[0].(*mcp.TextContent).Text, got, r.IsError
}

func (c *mcpClient) bash(command string) (text string, got map[string]any, failed bool) {
	c.Helper()
	return c.call(c.Context(), "bash", map[string]any{"command": command})
}

// lists looks at the tools, and keeps what they say of their results.
func (c *mcpClient) lists() {
	c.Helper()
	r, err := c.session.ListTools(c.Context(), nil)
	if err != nil {
		c.Fatal(err)
	}
	reads := map[string]bool{}
	c.results = map[string]*jsonschema.Resolved{}
	for _, t := range r.Tools {
		reads[t.Name] = t.Annotations.ReadOnlyHint
		var results jsonschema.Schema
		text, err := json.Marshal(t.OutputSchema)
		if err == nil {
			err = json.Unmarshal(text, &results)
		}
		if err == nil {
			c.results[t.Name], err = results.Resolve(nil)
		}
		if err != nil || results.Properties["exit_code"] == nil {
			c.Fatalf("%s has the results %s: %v", t.Name, text, err)
		}
	}
	if bash, ok := reads["bash"]; !ok || bash || !reads["read_file"] {
		c.Errorf("the tools, and which only read: %v", reads)
	}
}

func (c *mcpClient) runs() {
	c.Helper()
	if text, got, failed := c.bash("echo hi; pwd"); failed || text != "hi\n"+c.site.workspace+"\n" || got["exit_code"] != 0.0 {
		c.Errorf("echo hi; pwd: %q %v", text, got)
	}
	if _, got, failed := c.bash("exit 3"); !failed || got["exit_code"] != 3.0 {
		c.Errorf("exit 3: %v", got)
	}
	if _, got, failed := c.call(c.Context(), "write_file", map[string]any{"file_path": "note.txt", "content": "one\n"}); failed || got["diff"] == "" {
		c.Errorf("write_file: %v", got)
	}
	if text, _, failed := c.call(c.Context(), "read_file", map[string]any{"file_path": "note.txt"}); failed || !strings.Contains(text, "one") {
		c.Errorf("read_file: %q", text)
	}
	patch := "*** Begin Patch\n*** Update File: note.txt\n@@\n-one\n+two\n*** Add File: other.txt\n+new\n*** End Patch"
	if _, got, failed := c.call(c.Context(), "apply_patch", map[string]any{"input": patch}); failed || got["files"] == nil {
		c.Errorf("apply_patch: %v", got)
	}
	text, got, failed := c.call(c.Context(), "bash", map[string]any{"command": "sleep 1000", "background": true})
	running, _ := got["background"].(map[string]any)
	if failed || running["tool_call_id"] == nil {
		c.Fatalf("in the background: %q %v", text, got)
	}
	running = map[string]any{"call_id": running["tool_call_id"]}
	for tool, arguments := range map[string]map[string]any{
		"grep": {"pattern": "two"}, "glob": {"pattern": "*"}, "list_calls": {}, "bash_output": running, "bash_kill": running,
	} {
		if text, got, failed := c.call(c.Context(), tool, arguments); failed {
			c.Errorf("%s: %q %v", tool, text, got)
		}
	}
}

// printsMuch has a result shortened, and a client that wants it sent the progress.
func (c *mcpClient) printsMuch() {
	c.Helper()
	text, got, failed := c.bash("head -c 1000000 /dev/zero | tr '\\0' x")
	if failed || got["stdout_bytes"] != 1e6 || got["truncated"] != true || len(text) > 1e5 {
		c.Errorf("1 MB: %d bytes, %v", len(text), got["stdout_bytes"])
	}
	params := &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "echo half way; until [ -e go ]; do sleep 0.1; done; rm go"}}
	params.SetProgressToken("p")
	ended := make(chan error)
	go func() {
		_, err := c.session.CallTool(c.Context(), params)
		ended <- err
	}()
	for message := range c.progress {
		if message == "half way" {
			break
		}
	}
	if err := os.WriteFile(filepath.Join(c.site.workspace, "go"), nil, 0o600); err != nil {
		c.Fatal(err)
	}
	if err := <-ended; err != nil {
		c.Error(err)
	}
}

func (c *mcpClient) refuses() {
	c.Helper()
	text, got, failed := c.call(c.Context(), "read_file", map[string]any{"file_path": filepath.Join(c.site.home, ".ssh", "id_ed25519")})
	if !failed || got["error_type"] != "denied" || text == "" {
		c.Errorf("reading a key: %q %v", text, got)
	}
	// The daemon could not name the call in its error.
	for _, arguments := range []string{"{\"command\": \"echo \xff\"}", `{"command": ` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`} {
		r, err := c.session.CallTool(c.Context(), &mcp.CallToolParams{Name: "bash", Arguments: json.RawMessage(arguments)})
		if err != nil || !r.IsError || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, "nothing ran") {
			c.Errorf("%.30q: got %+v, %v, want an error of the tool", arguments, r, err)
		}
	}
}

// asks has the user decide: no, nothing clear, and yes.
func (c *mcpClient) asks() {
	c.Helper()
	lost := func() bool { _, err := os.Stat(filepath.Join(c.site.workspace, "work", "a")); return err != nil }
	for _, no := range []*mcp.ElicitResult{
		{Action: "decline"},
		{Action: "cancel"},
		{Action: "accept", Content: map[string]any{"decision": "deny", "reason": "keep it"}},
	} {
		c.answers = func(p *mcp.ElicitParams) *mcp.ElicitResult {
			if !strings.Contains(p.Message, "rm -rf work") {
				c.Errorf("the question is %q", p.Message)
			}
			return no
		}
		if text, got, failed := c.bash("rm -rf work"); !failed || lost() || no.Content != nil && !strings.Contains(text, "keep it") {
			c.Errorf("after %+v: %q %v", no, text, got)
		}
	}
	c.answers = func(*mcp.ElicitParams) *mcp.ElicitResult {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}
	}
	if text, got, failed := c.bash("rm -rf work"); failed || !lost() {
		c.Errorf("after a yes: %q %v", text, got)
	}
}

// cancels ends a request while its command runs.
func (c *mcpClient) cancels() {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	ended := make(chan error)
	go func() {
		_, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "touch started; sleep 1000"}})
		ended <- err
	}()
	eventually(c.T, "the command runs", func() bool { _, err := os.Stat(filepath.Join(c.site.workspace, "started")); return err == nil })
	cancel()
	if err := <-ended; err == nil {
		c.Error("a cancelled request has an answer")
	}
	eventually(c.T, "the command ends", func() bool {
		text, _, failed := c.call(c.Context(), "list_calls", nil)
		return !failed && !strings.Contains(text, "sleep 1000")
	})
}

// isBounded has more calls wait for the user than may, and then answers.
func (c *mcpClient) isBounded() {
	c.Helper()
	work := filepath.Join(c.site.workspace, "work")
	if err := errors.Join(os.MkdirAll(work, 0o700), os.WriteFile(filepath.Join(work, "b"), []byte("b"), 0o600)); err != nil {
		c.Fatal(err)
	}
	answer := make(chan struct{})
	c.answers = func(*mcp.ElicitParams) *mcp.ElicitResult {
		<-answer
		return &mcp.ElicitResult{Action: "cancel"}
	}
	const many = 64 + 3
	texts := make(chan string, many)
	for range many {
		go func() {
			r, err := c.session.CallTool(c.Context(), &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "rm -rf work"}})
			if err != nil {
				texts <- err.Error()
				return
			}
			texts <- r.Content[0].(*mcp.TextContent).Text
		}()
	}
	for range many - 64 {
		if text := <-texts; !strings.Contains(text, "64 calls run or wait") || !strings.Contains(text, "nothing ran") {
			c.Errorf("one call too many: %q", text)
		}
	}
	close(answer)
	for range 64 {
		if text := <-texts; strings.Contains(text, "calls run or wait") {
			c.Errorf("a call that waited: %q", text)
		}
	}
	if text, _, failed := c.bash("echo on"); failed || text != "on\n" {
		c.Errorf("after all have ended: %q", text)
	}
}

// losesTheDaemon checks that nothing runs without it.
func (c *mcpClient) losesTheDaemon() {
	c.Helper()
	if err := c.daemon.stop(syscall.SIGTERM); err != nil {
		c.Fatal(err)
	}
	if text := c.tries("touch without"); c.has("without") || c.server != nil && !strings.Contains(text, "nothing ran") {
		c.Errorf("without the daemon: %q", text)
	}
}

// TestMCPLeavesNothingBehind ends the client while a call runs and another waits for its
// user: when the server has ended, both have.
func TestMCPLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	bin := daemonOrSkip(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := newCarefulSite(t, bin)
			c.overStdio(version)
			asked, answer := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(answer) })
			t.Cleanup(release) // the session does not close before
			c.answers = func(*mcp.ElicitParams) *mcp.ElicitResult {
				close(asked)
				<-answer
				return &mcp.ElicitResult{Action: "cancel"}
			}
			var calls sync.WaitGroup
			for _, command := range []string{"touch started; sleep 1000", "rm -rf work"} {
				calls.Go(func() {
					c.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": command}})
				})
			}
			<-asked
			eventually(t, "the command runs", func() bool { _, err := os.Stat(filepath.Join(c.site.workspace, "started")); return err == nil })
			agent, err := client.Dial(t.Context(), client.Options{URL: c.daemon.ws, Token: c.daemon.tokens["agent"]})
			if err != nil {
				t.Fatal(err)
			}
			defer agent.Close()
			if list, err := agent.ListCalls(t.Context(), "", false); err != nil || len(list) != 2 {
				t.Fatalf("before the end: %+v, %v", list, err)
			}
			if err := c.server.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the server ends", func() bool { return hasEnded(c.server.Process.Pid) })
			if list, err := agent.ListCalls(t.Context(), "", false); err != nil || len(list) != 0 {
				t.Errorf("after the end: %+v, %v", list, err)
			}
			release()
			calls.Wait()
		})
	}
}

// hasEnded reports whether a child has ended, which it has when others can see it no more
// or no one has waited for it yet.
func hasEnded(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !so() {
		if suite.Sleep(ctx, 20*time.Millisecond) != nil {
			t.Fatalf("not in time: %s", what)
		}
	}
}
