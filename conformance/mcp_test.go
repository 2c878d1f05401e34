//go:build linux

package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/client"
)

// mcpClient is a client of the Model Context Protocol whose server is `toold mcp`.
type mcpClient struct {
	*testing.T
	site    *site
	daemon  *daemon
	server  *exec.Cmd
	session *mcp.ClientSession
	answers func(*mcp.ElicitParams) *mcp.ElicitResult // of the user; nil: nobody is asked
}

// TestMCP plays the same turns in both versions of the protocol, with the client of the
// official SDK.
func TestMCP(t *testing.T) {
	t.Parallel()
	bin := daemonOrSkip(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c := newMCPClient(t, bin, version)
			c.lists()
			c.runs()
			c.refuses()
			c.asks()
			c.cancels()
			c.isBounded()
			c.losesTheDaemon()
		})
	}
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
	settings, err := s.settings(setup{}, policy)
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

func newMCPClient(t *testing.T, bin, version string) *mcpClient {
	t.Helper()
	c := newCarefulSite(t, bin)
	s := c.site
	server := exec.Command(bin, "mcp", "-C", s.workspace, "--state-dir", s.state, "--config", s.config)
	server.Env, server.Stderr = []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, os.Stderr
	c.server = server
	peer := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return c.answers(r.Params), nil
		},
	})
	var err error
	if c.session, err = peer.Connect(t.Context(), &mcp.CommandTransport{Command: server}, &mcp.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.session.Close() })
	return c
}

// call makes a call and returns what the model reads, and the structured result.
func (c *mcpClient) call(ctx context.Context, tool string, arguments map[string]any) (text string, got map[string]any, failed bool) {
	c.Helper()
	r, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		c.Fatalf("%s %v: %v", tool, arguments, err)
	}
	got, _ = r.StructuredContent.(map[string]any)
	return r.Content[0].(*mcp.TextContent).Text, got, r.IsError
}

func (c *mcpClient) bash(command string) (text string, got map[string]any, failed bool) {
	c.Helper()
	return c.call(c.Context(), "bash", map[string]any{"command": command})
}

func (c *mcpClient) lists() {
	c.Helper()
	r, err := c.session.ListTools(c.Context(), nil)
	if err != nil {
		c.Fatal(err)
	}
	reads := map[string]bool{}
	for _, t := range r.Tools {
		reads[t.Name] = t.Annotations.ReadOnlyHint
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
}

func (c *mcpClient) refuses() {
	c.Helper()
	text, got, failed := c.call(c.Context(), "read_file", map[string]any{"file_path": filepath.Join(c.site.home, ".ssh", "id_ed25519")})
	if !failed || got["error_type"] != "denied" || text == "" {
		c.Errorf("reading a key: %q %v", text, got)
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
	text, got, failed := c.bash("touch without")
	if _, err := os.Stat(filepath.Join(c.site.workspace, "without")); err == nil || !failed || !strings.Contains(text, "nothing ran") {
		c.Errorf("without the daemon: %q %v", text, got)
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
			c := newMCPClient(t, bin, version)
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
			if list, err := agent.ListCalls(t.Context(), false); err != nil || len(list) != 2 {
				t.Fatalf("before the end: %+v, %v", list, err)
			}
			if err := c.server.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the server ends", func() bool { return hasEnded(c.server.Process.Pid) })
			if list, err := agent.ListCalls(t.Context(), false); err != nil || len(list) != 0 {
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
		if elapse(ctx, 20*time.Millisecond) != nil {
			t.Fatalf("not in time: %s", what)
		}
	}
}
