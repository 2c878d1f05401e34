//go:build linux

package conformance

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// The user of one client is not asked about the call of another, which may have chosen the same ids.
func TestMCPAsksOnlyAboutItsOwnCalls(t *testing.T) {
	bin := daemonOrSkip(t)
	eachMCP(t, func(t *testing.T, connect func(*mcpClient)) {
		c := newCarefulSite(t, bin)
		if err := os.MkdirAll(filepath.Join(c.site.workspace, "other"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.site.workspace, "other", "a"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		connect(c)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		token := "agent"
		if c.server != nil { // which has that one
			token = "agent-approver"
		}
		other, err := client.Dial(ctx, client.Options{URL: c.daemon.ws, Token: c.daemon.tokens[token]})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		waits := make(chan struct{})
		go func() {
			// Ends with ctx.
			_, _ = other.Call(ctx, client.Call{ID: "toolu_1", AgentID: "conformance", Tool: "bash", Arguments: map[string]string{"command": "rm -rf work"}},
				client.Events{Decision: func(message.PolicyDecision) { close(waits) }})
		}()
		<-waits
		c.answers = func(p *mcp.ElicitParams) *mcp.ElicitResult {
			if !strings.Contains(p.Message, "rm -rf other") {
				c.Errorf("the question is %q", p.Message)
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "allow once"}}
		}
		r, err := c.session.CallTool(ctx, &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "rm -rf other"}, Meta: mcp.Meta{"claudecode/toolUseId": "toolu_1"}})
		if err != nil || r.IsError || c.has("other") || !c.has("work") {
			t.Errorf("%+v, %v: other is there: %v, work: %v", r, err, c.has("other"), c.has("work"))
		}
	})
}
