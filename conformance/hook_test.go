//go:build linux

package conformance

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/claude"
	"github.com/toold/toold/message"
)

// hook has Claude Code start the hook of toold, as docs/connect.md says.
func (r *claudeRig) hook() {
	r.hooks = map[string]any{"PreToolUse": []any{claude.Setting(r.toold()...)}}
}

// approve has a person say yes to all, as long as the test runs.
func (r codexRig) approve(t *testing.T) {
	go func() {
		_ = r.approver.Approvals(t.Context(), client.ApprovalEvents{Requested: func(q message.ApprovalRequest) {
			if _, err := r.approver.Decide(t.Context(), client.Decision{ApprovalID: q.ID, Approve: true}); err != nil {
				t.Error(err)
			}
		}})
	}()
}

// Without the plugin the hook alone decides, and fails closed.
func TestTheHookHoldsStockClaude(t *testing.T) {
	t.Parallel()
	r := newClaudeRig(t)
	r.plugin = false
	r.hook()
	r.approve(t)
	r.write(t, ".env", "SECRET\n")
	m := r.turn(t, []move{
		claudeBash("echo by itself"),
		claudeBash("touch made; git push origin main"),
		{tool: "Read", args: map[string]any{"file_path": r.file(".env")}},
		claudeBash("mkdir yes && echo made it"),
		{tool: "Write", args: map[string]any{"file_path": r.file("note.txt"), "content": "first\n"}},
	}, nil)
	m.expect(t, false, map[int][]string{1: {"by itself"}, 2: {"no-push", "use a branch"}, 3: {"secrets"}, 4: {"made it"}, 5: {"created"}})
	id, _ := m.saw(false, 2)
	list, err := r.dial(client.Options{}).ListMessages(t.Context(), message.ListMessages{CallID: id, Limit: 5})
	if err != nil || len(list.Messages) != 2 {
		t.Errorf("of %s the journal has %s, %v", id, list.Messages, err)
	}
	if err := r.daemon.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	moves := []move{claudeBash("touch made"), {tool: "Write", args: map[string]any{"file_path": r.file("made"), "content": "x"}}}
	r.turn(t, moves, nil).expect(t, false, map[int][]string{1: {"no daemon"}, 2: {"no daemon"}})
	r.codexRig.program = filepath.Join(r.home, "missing")
	r.hook()
	r.turn(t, moves, nil).expect(t, false, map[int][]string{1: {"onFailure"}, 2: {"onFailure"}})
	r.nothingMade()
}

// What the plugin leaves to Claude Code is decided once, by plugin and hook together.
func TestStockClaudeShowsPicturesAndEditsNotebooks(t *testing.T) {
	t.Parallel()
	r := newClaudeRig(t)
	r.hook()
	const picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
	r.write(t, "x.png", picture)
	r.write(t, "n.ipynb", `{"cells":[{"cell_type":"code","id":"c1","source":["old"],"metadata":{},"outputs":[],"execution_count":null}],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	m := r.turn(t, []move{
		{tool: "Read", args: map[string]any{"file_path": r.file("x.png")}},
		{tool: "Read", args: map[string]any{"file_path": r.file("n.ipynb")}},
		{tool: "ToolSearch", args: map[string]any{"query": "select:NotebookEdit"}},
		{tool: "NotebookEdit", args: map[string]any{"notebook_path": r.file("n.ipynb"), "cell_id": "c1", "new_source": "changed"}},
	}, nil)
	m.expect(t, false, map[int][]string{1: {"image"}, 2: {"old"}, 4: {"c1"}})
	if text, err := os.ReadFile(r.file("n.ipynb")); !strings.Contains(string(text), "changed") {
		t.Errorf("the notebook is %s, %v", text, err)
	}
}

// TestTheHookHoldsStockCodex: what is printed for yes is no yes of its own, and "ask" would
// be one.
func TestTheHookHoldsStockCodex(t *testing.T) {
	t.Parallel()
	program := stockCodex(t)
	r := newCodexRig(t)
	r.approve(t)
	m := newModel(t, shell("echo by itself"), shell("touch made; git push origin main"), shell("mkdir yes && echo made it"))
	out := r.hookedCodex(t, program, m)
	for n, want := range map[int]string{1: "by itself", 2: "no-push", 3: "made it"} {
		if !strings.Contains(m.saw(n), want) {
			t.Errorf("of move %d the model saw %.600q, without %q", n, m.saw(n), want)
		}
	}
	if err := r.daemon.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m = newModel(t, shell("touch made"))
	out += r.hookedCodex(t, program, m)
	if !strings.Contains(m.saw(1), "no daemon") {
		t.Errorf("without a daemon the model saw %q", m.saw(1))
	}
	r.nothingMade()
	if t.Failed() {
		t.Log(out)
	}
}

// hookedCodex runs stock Codex with its own executor, unconfined, and the hook.
func (r codexRig) hookedCodex(t *testing.T, program string, m *model) string {
	t.Helper()
	home := t.TempDir()
	line := strings.Join([]string{r.program, "hook", "codex", "--state-dir", r.site.state, "--config", r.site.config}, " ")
	hooks, err := json.Marshal(map[string]any{"hooks": map[string]any{"PreToolUse": []any{map[string]any{
		"matcher": ".*", "hooks": []any{map[string]any{"type": "command", "command": line, "timeout": 600}},
	}}}})
	config := `model = "scripted"
model_provider = "scripted"
approval_policy = "never"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "` + m.URL + `/v1"
wire_api = "responses"
`
	err = errors.Join(err, os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600), os.WriteFile(filepath.Join(home, "hooks.json"), hooks, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "exec", "--skip-git-repo-check", "-s", "danger-full-access", "--dangerously-bypass-hook-trust", "--json", "go on")
	cmd.Dir = r.site.workspace
	const nowhere = "http://127.0.0.1:1"
	proxies := []string{"HTTPS_PROXY=" + nowhere, "HTTP_PROXY=" + nowhere, "ALL_PROXY=" + nowhere, "NO_PROXY=127.0.0.1,localhost"}
	cmd.Env = append(proxies, "HOME="+home, "CODEX_HOME="+home, "PATH="+os.Getenv("PATH"), "LANG=C.UTF-8", "OPENAI_API_KEY=none")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("codex ended with %v", err)
	}
	return string(out)
}
