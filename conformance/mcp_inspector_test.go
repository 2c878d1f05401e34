//go:build linux

package conformance

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TestMCPInspector has the command line of the MCP inspector list the tools and call one,
// over both transports.
func TestMCPInspector(t *testing.T) {
	t.Parallel()
	inspector := os.Getenv("TOOLD_INSPECTOR")
	if inspector == "" {
		t.Skip("TOOLD_INSPECTOR names no program: npm install @modelcontextprotocol/inspector (2.12.0 was tried), and a script that runs its mcp-inspector --cli")
	}
	c := newCarefulSite(t, daemonOrSkip(t))
	for name, server := range map[string][]string{
		"stdio": {"-e", "TOOLD_STATE_DIR=" + c.site.state, "-e", "TOOLD_CONFIG=" + c.site.config, "--", c.daemon.cmd.Path, "mcp", "-C", c.site.workspace},
		"http":  {"--transport", "http", "--header", "Authorization: Bearer " + c.daemon.tokens["agent"], "--", c.daemon.http + "/mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			run := func(answer any, flags ...string) {
				t.Helper()
				cmd := exec.Command(inspector, append(flags, server...)...)
				cmd.Env, cmd.Dir = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, home
				var complaints bytes.Buffer
				cmd.Stderr = &complaints
				out, err := cmd.Output()
				if err == nil {
					err = json.Unmarshal(out, answer)
				}
				if err != nil {
					t.Fatalf("%q: %v\n%s%s", flags, err, out, complaints.Bytes())
				}
			}
			type tool struct{ Name string }
			var list struct{ Tools []tool }
			run(&list, "--method", "tools/list")
			if !slices.Contains(list.Tools, tool{"bash"}) {
				t.Errorf("the tools are %v", list.Tools)
			}
			var got struct {
				IsError           bool
				Content           []struct{ Text string }
				StructuredContent struct {
					ExitCode int `json:"exit_code"`
				}
			}
			run(&got, "--method", "tools/call", "--tool-name", "bash", "--tool-arg", "command=echo hi")
			if got.IsError || len(got.Content) != 1 || got.Content[0].Text != "hi\n" {
				t.Errorf("echo hi: %+v", got)
			}
		})
	}
}
