//go:build linux

package conformance

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client that has no forms sends its user to a page of toold, where the token of an approver
// decides and that of the client does not.
func TestMCPAsksAtAPage(t *testing.T) {
	eachVersion(t, func(t *testing.T, c *mcpClient, version string) {
		c.page = true
		c.connect(c.endpoint("agent"), version)
		c.decidesAtPage()
	})
}

func TestMCPOverStdioAsksAtAPage(t *testing.T) {
	eachVersion(t, func(t *testing.T, c *mcpClient, version string) {
		c.page = true
		c.overStdio(version)
		c.decidesAtPage()
	})
}

// decidesAtPage has the person say no and yes at the page, and the client turn away.
func (c *mcpClient) decidesAtPage() {
	c.Helper()
	seen := make(chan string, 8) // what the person saw
	decide := func(decision string) func(*mcp.ElicitParams) *mcp.ElicitResult {
		return func(p *mcp.ElicitParams) *mcp.ElicitResult {
			if p.Mode != "url" || !strings.HasPrefix(p.URL, c.daemon.http+"/approvals/") {
				c.Errorf("the client is sent to %q by %q", p.URL, p.Mode)
				return &mcp.ElicitResult{Action: "cancel"}
			}
			go func() {
				empty := c.visit(p.URL, nil)
				mine := c.visit(p.URL, url.Values{"token": {c.daemon.tokens["agent"]}, "decision": {"once"}})
				if question := "rm -rf"; strings.Contains(empty+mine, question) || !strings.Contains(mine, "not the token") {
					c.Errorf("without the token of an approver the page says %q and %q", empty, mine)
				}
				token := c.daemon.tokens["approver"]
				seen <- c.visit(p.URL, url.Values{"token": {token}})
				seen <- c.visit(p.URL, url.Values{"token": {token}, "decision": {decision}, "reason": {"as I <said>"}})
				seen <- c.visit(p.URL, url.Values{"token": {token}})
			}()
			return &mcp.ElicitResult{Action: "accept"}
		}
	}
	c.answers = decide("deny")
	if text := c.tries("rm -rf work"); !c.has("work") || !strings.Contains(text, "as I <said>") {
		c.Errorf("after a no at the page: %q", text)
	}
	for _, want := range []string{"rm -rf work", "Denied", "No call waits"} {
		if got := <-seen; !strings.Contains(got, want) {
			c.Errorf("the page shows %q, want %q", got, want)
		}
	}
	c.answers = func(*mcp.ElicitParams) *mcp.ElicitResult { return &mcp.ElicitResult{Action: "decline"} }
	if text := c.tries("rm -rf work"); !c.has("work") {
		c.Errorf("after the user turned away: %q", text)
	}
	c.answers = decide("once")
	if text := c.tries("rm -rf work"); c.has("work") {
		c.Errorf("after a yes at the page: %q", text)
	}
	for range 3 {
		<-seen
	}
}

// visit opens a page, or sends its form.
func (c *mcpClient) visit(page string, form url.Values) string {
	c.Helper()
	var r *http.Response
	var err error
	if form == nil {
		r, err = http.Get(page)
	} else {
		r, err = http.PostForm(page, form)
	}
	if err != nil {
		c.Error(err)
		return ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return string(text)
}
