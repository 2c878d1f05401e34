//go:build linux

package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// stockCodex is the program codex of the npm package @openai/codex. Without it these tests
// are skipped.
func stockCodex(t testing.TB) string {
	t.Helper()
	path := os.Getenv("TOOLD_CODEX")
	if path == "" {
		t.Skip("TOOLD_CODEX does not name the program codex: npm install @openai/codex, then TOOLD_CODEX=.../node_modules/.bin/codex (0.169.0 was tried)")
	}
	return path
}

// codex runs stock Codex for one turn in the workspace, set up as docs/connect.md says, and
// returns what it printed. Its home is below the site: it changes nothing of the user's.
func (r codexRig) codex(t *testing.T, program string, m *model) string {
	t.Helper()
	home := filepath.Join(filepath.Dir(r.site.config), "codex-home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config.toml": `model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "` + m.URL + `/v1"
wire_api = "responses"
`,
		"environments.toml": `default = "toold"
include_local = false
[[environments]]
id = "toold"
url = "` + strings.TrimSuffix(r.daemon.ws, "/v1/ws") + `/v1/codex"
auth_bearer_token = "` + r.daemon.tokens["agent"] + `"
`,
	} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "exec", "--skip-git-repo-check", "--json", "go on")
	cmd.Dir = r.site.workspace
	// What is not on loopback it must not reach: there is no such proxy.
	const nowhere = "http://127.0.0.1:1"
	proxies := []string{"HTTPS_PROXY=" + nowhere, "HTTP_PROXY=" + nowhere, "ALL_PROXY=" + nowhere, "NO_PROXY=127.0.0.1,localhost"}
	cmd.Env = append(proxies, "HOME="+home, "CODEX_HOME="+home, "PATH="+os.Getenv("PATH"), "LANG=C.UTF-8", "OPENAI_API_KEY=none")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("codex ended with %v", err)
	}
	return string(out)
}

// shell is a command of the model.
func shell(script string, more ...any) move {
	args := map[string]any{"cmd": script}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return move{tool: "exec_command", args: args}
}

// typed is input for the latest command that runs on.
func typed(text string) move {
	return move{tool: "write_stdin", args: map[string]any{"session_id": "$", "chars": text, "yield_time_ms": 2000}}
}

func TestStockCodexWorksInToold(t *testing.T) {
	t.Parallel()
	program := stockCodex(t)
	r := newCodexRig(t)
	file := func(name, text string) {
		if err := os.WriteFile(filepath.Join(r.site.workspace, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file("hello.txt", "hello\n")
	file(".env", "SECRET\n")
	file("AGENTS.md", "be brief\n")
	m := newModel(
		t,
		shell("echo one; echo two >&2; exit 3"),
		shell("touch made; git push origin main"),
		shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: new/file.txt\n+first\n*** Update File: hello.txt\n@@\n-hello\n+bye\n*** End Patch\nEOF"),
		shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: .env\n@@\n-SECRET\n+x\n*** End Patch\nEOF"),
		shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: new/file.txt\n*** End Patch\nEOF"),
		shell("read -r line; echo \"got $line\"; sleep 1000", "tty", true, "yield_time_ms", 500),
		typed("words\n"),
		typed("\x03"),
		shell("seq 1 200000", "yield_time_ms", 30000),
	)
	out := r.codex(t, program, m)
	for n, want := range map[int][]string{
		1: {"one\n", "two\n", "exited with code 3"},
		2: {"no-push", "use a branch"},
		3: {"Success", "A new/file.txt", "M hello.txt"},
		4: {"secrets"},
		5: {"Success", "D new/file.txt"},
		6: {"session ID"},
		7: {"got words"},
		8: {"exited with code 130"},
		9: {"exited with code 0", "200000"},
	} {
		for _, text := range want {
			if !strings.Contains(m.saw(n), text) {
				t.Errorf("of move %d the model saw %.600q, without %q", n, m.saw(n), text)
			}
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	r.nothingMade()
	for name, want := range map[string]string{"hello.txt": "bye\n", ".env": "SECRET\n"} {
		if text, err := os.ReadFile(filepath.Join(r.site.workspace, name)); string(text) != want {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	list, err := r.dial(client.Options{}).ListMessages(t.Context(), message.ListMessages{CallID: "call_1", Limit: 5})
	if err != nil || len(list.Messages) != 2 {
		t.Errorf("of call_1 the journal has %s, %v", list.Messages, err)
	}
}

func TestStockCodexWaitsForAPerson(t *testing.T) {
	t.Parallel()
	program := stockCodex(t)
	r := newCodexRig(t)
	go func() {
		_ = r.approver.Approvals(t.Context(), client.ApprovalEvents{Requested: func(q message.ApprovalRequest) {
			d := client.Decision{ApprovalID: q.ID, Approve: q.ToolCall.ToolCallID == "call_1", Reason: "make no directories"}
			if _, err := r.approver.Decide(t.Context(), d); err != nil {
				t.Error(err)
			}
		}})
	}()
	m := newModel(t, shell("mkdir yes && echo made it"), shell("mkdir made"))
	out := r.codex(t, program, m)
	if !strings.Contains(m.saw(1), "made it") || !strings.Contains(m.saw(2), "make no directories") {
		t.Errorf("the model saw %q and %q\n%s", m.saw(1), m.saw(2), out)
	}
	r.nothingMade()
}

// Where toold does not answer, Codex must not run the command by itself.
func TestStockCodexRunsNothingWithoutToold(t *testing.T) {
	t.Parallel()
	program := stockCodex(t)
	r := newCodexRig(t)
	if err := r.daemon.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m := newModel(t, shell("touch made"), shell("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\nEOF"))
	out := r.codex(t, program, m)
	r.nothingMade()
	t.Logf("codex said %.400s", out)
}

func TestStockCodexRunsNothingWithAWrongToken(t *testing.T) {
	t.Parallel()
	program := stockCodex(t)
	r := newCodexRig(t)
	agent := r.daemon.tokens["agent"]
	r.daemon.tokens["agent"] = "wrong"
	m := newModel(t, shell("touch made"))
	r.codex(t, program, m)
	r.daemon.tokens["agent"] = agent
	r.nothingMade()
}
