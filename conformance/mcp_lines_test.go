//go:build linux

package conformance

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMCPAnswersALineThatIsNoMessage sends lines that the SDK would end a session for.
func TestMCPAnswersALineThatIsNoMessage(t *testing.T) {
	t.Parallel()
	c := newCarefulSite(t, daemonOrSkip(t))
	server := exec.Command(c.daemon.cmd.Path, "mcp", "-C", c.site.workspace, "--state-dir", c.site.state, "--config", c.site.config)
	server.Env, server.Stderr = []string{"HOME=" + c.site.home, "PATH=" + os.Getenv("PATH")}, os.Stderr
	in, err1 := server.StdinPipe()
	out, err2 := server.StdoutPipe()
	if err := server.Start(); err1 != nil || err2 != nil || err != nil {
		t.Fatal(err1, err2, err)
	}
	answers := bufio.NewReader(out)
	for _, each := range []struct{ line, id, says string }{
		{"no JSON", `null`, "not JSON"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"`, `null`, "not JSON"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, `null`, "not JSON"},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `null`, "batches"},
		{`{"jsonrpc":"1.0","id":"seven","method":"ping"}`, `"seven"`, "JSON-RPC 2.0"},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `null`, "JSON-RPC 2.0"},
		{`17`, `null`, "JSON-RPC 2.0"},
		{`"` + strings.Repeat("x", 17<<20) + `"`, `null`, "longer than"},
		{"\r\n \n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\r", `2`, ""},
	} {
		if _, err := io.WriteString(in, each.line+"\n"); err != nil {
			t.Fatal(err)
		}
		text, err := answers.ReadString('\n')
		if err != nil {
			t.Fatalf("%.60s: %v", each.line, err)
		}
		var got struct {
			ID    json.RawMessage
			Error struct{ Message string }
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || string(got.ID) != each.id || !strings.Contains(got.Error.Message, each.says) {
			t.Errorf("%.60s is answered with %s", each.line, text)
		}
	}
	in.Close()
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}
