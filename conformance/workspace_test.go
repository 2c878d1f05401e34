//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
)

// TestEveryEntryFindsTheNamedWorkspace names one in each spelling, wherever a client can name one.
func TestEveryEntryFindsTheNamedWorkspace(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	second, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if _, err := workspaces.In(r.site.state).Add(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(second, link); err != nil {
		t.Fatal(err)
	}
	around, err := filepath.Rel(r.site.workspace, second)
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		second: second, second + "/": second, r.site.workspace + "/" + around: second, link: second, link + "/sub": second,
		"relative": "", "": r.site.workspace, t.TempDir(): "",
	} {
		for entry, pwd := range map[string]func(t *testing.T, dir string) string{"websocket": r.pwdOverWebSocket, "http": r.pwdOverHTTP, "mcp": r.pwdOverMCP} {
			if got := pwd(t, dir); got != want {
				t.Errorf("%s: %q is the workspace %q, want %q", entry, dir, got, want)
			}
		}
	}
}

// pwdOverWebSocket returns where a command runs; "" if it does not.
func (r *rig) pwdOverWebSocket(t *testing.T, dir string) string {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Options{URL: r.daemon.ws, Token: r.daemon.tokens["agent"], Workspace: dir})
	if err != nil {
		return ""
	}
	defer c.Close()
	ret, err := r.try(c, "pwd", "off", client.Events{})
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(ret.Result)
}

func (r *rig) pwdOverHTTP(t *testing.T, dir string) string {
	t.Helper()
	body := fmt.Sprintf(`{"message_type":"approval_request_message","tool_call":{"tool_call_id":%q,"tool_name":"bash","arguments":{"command":"pwd"}}}`, message.NewID("call"))
	q, err := http.NewRequestWithContext(t.Context(), "POST", r.daemon.http+"/v1/calls?workspace="+url.QueryEscape(dir), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := bearer{r.daemon.tokens["agent"], http.DefaultTransport}.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var ret message.ToolReturn
	if err := json.NewDecoder(response.Body).Decode(&ret); err != nil || response.StatusCode != http.StatusOK && response.StatusCode != http.StatusBadRequest {
		t.Errorf("%s, %v", response.Status, err)
	}
	return strings.TrimSpace(ret.Result)
}

func (r *rig) pwdOverMCP(t *testing.T, dir string) string {
	t.Helper()
	to := &mcp.StreamableClientTransport{
		Endpoint: r.daemon.http + "/mcp?workspace=" + url.QueryEscape(dir), MaxRetries: -1, HTTPClient: &http.Client{Transport: bearer{r.daemon.tokens["agent"], http.DefaultTransport}},
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "1"}, nil).Connect(t.Context(), to, nil)
	if err != nil {
		return ""
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "pwd"}})
	if err != nil {
		return ""
	}
	text, _ := result.Content[0].(*mcp.TextContent)
	return strings.TrimSpace(text.Text)
}
