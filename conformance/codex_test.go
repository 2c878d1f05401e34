//go:build linux

package conformance

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stockCodex is the program codex of the npm package @openai/codex.
func stockCodex(t testing.TB) string {
	t.Helper()
	return skipWithout(t, "TOOLD_CODEX", "the program codex (0.169.0 was tried)")
}

// codex is stock Codex, a run of `codex exec` each time.
type codex struct {
	*agentRig
	program string
	home    string
	local   bool   // it runs its commands itself, and has the hook
	hooks   []byte // its hooks.json
}

func newCodex(t *testing.T) *codex {
	program := stockCodex(t)
	return &codex{agentRig: newAgentRig(t), program: program, home: t.TempDir()}
}

func (c *codex) call(s deed) (move, string) {
	script, more := s.run, map[string]any{"yield_time_ms": 30000}
	switch {
	case s.follow:
		return move{"write_stdin", map[string]any{"session_id": "$", "chars": "words\n", "yield_time_ms": 10000}}, ""
	case s.subagent:
		return move{"multi_agent_v1.spawn_agent", map[string]any{"message": subagent}}, ""
	case s.await:
		return move{"multi_agent_v1.wait_agent", map[string]any{"targets": []string{"$"}, "timeout_ms": 60000}}, ""
	case s.background != "":
		script, more = s.background, map[string]any{"yield_time_ms": 500, "tty": true}
	case s.edit != nil:
		change := "*** Update File: " + s.edit.name + "\n@@\n-" + s.edit.from
		if s.edit.from == "" {
			change = "*** Add File: " + s.edit.name
		}
		script = "apply_patch <<'EOF'\n*** Begin Patch\n" + change + "\n+" + s.edit.to + "\n*** End Patch\nEOF"
	}
	more["cmd"] = script
	return move{"exec_command", more}, ""
}

// Codex says that the connection was lost, or that the command still runs.
func (c *codex) lost() (killed, without []string) { return nil, []string{"exec"} }

const codexConfig = `model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "URL/v1"
wire_api = "responses"
`

const codexEnvironments = `default = "toold"
include_local = false
[[environments]]
id = "toold"
url = "URL/v1/codex"
auth_bearer_token = "TOKEN"
`

func (c *codex) play(t *testing.T, interrupt <-chan struct{}) {
	t.Helper()
	environments := strings.NewReplacer("URL", strings.TrimSuffix(c.daemon.ws, "/v1/ws"), "TOKEN", c.daemon.tokens["agent"]).Replace(codexEnvironments)
	args := []string{"exec", "--skip-git-repo-check", "--json"}
	err := os.WriteFile(filepath.Join(c.home, "config.toml"), []byte(strings.ReplaceAll(codexConfig, "URL", c.model.URL)), 0o600)
	if c.local {
		args = append(args, "-s", "danger-full-access", "--dangerously-bypass-hook-trust")
		err = errors.Join(err, os.WriteFile(filepath.Join(c.home, "hooks.json"), c.hooks, 0o600))
	} else {
		err = errors.Join(err, os.WriteFile(filepath.Join(c.home, "environments.toml"), []byte(environments), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), c.program, append(args, "go on")...)
	cmd.Dir = c.site.workspace
	cmd.Env = environment(c.home, "CODEX_HOME="+c.home, "OPENAI_API_KEY=none")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	select {
	case err = <-ended:
	case <-interrupt:
		err = errors.Join(cmd.Process.Signal(os.Interrupt), <-ended)
	}
	t.Logf("codex ended with %v: %.2000s", err, &out)
}

func TestStockCodexTypesAndRemovesFiles(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	c.write(t, "AGENTS.md", "be brief\n")
	c.write(t, "hello.txt", "hello\n")
	patch, _ := c.call(deed{edit: &edit{"new/file.txt", "", "first"}})
	terminal, _ := c.call(deed{background: "read -r line; echo \"got $line\"; sleep 1000"})
	typed, _ := c.call(deed{follow: true})
	stop := move{"write_stdin", map[string]any{"session_id": "$", "chars": "\x03", "yield_time_ms": 30000}}
	remove := move{"exec_command", map[string]any{"cmd": "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: hello.txt\n*** End Patch\nEOF"}}
	c.model.script([]move{patch, remove, terminal, typed, stop}, nil)
	c.play(t, nil)
	c.model.expect(t, []string{"A new/file.txt"}, []string{"D hello.txt"}, []string{"session ID"}, []string{"got words"}, []string{"exited with code 130"})
	if text, err := os.ReadFile(c.file("new/file.txt")); string(text) != "first\n" || c.exists("hello.txt") {
		t.Errorf("the new file is %q, %v", text, err)
	}
}

func TestStockCodexRunsNothingWithAWrongToken(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	c.wrongToken(t)
	do, _ := c.call(deed{run: "touch made"})
	c.model.script([]move{do}, nil)
	c.play(t, nil)
	c.nothingMade()
}
