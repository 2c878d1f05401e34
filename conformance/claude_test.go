//go:build linux

package conformance

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/claude"
	"github.com/toold/toold/message"
)

// claudeRig is stock Claude Code, the program claude of the npm package
// @anthropic-ai/claude-code, beside a daemon.
type claudeRig struct {
	codexRig
	program string
	home    string
	plugin  bool           // else it has no plugin
	hooks   map[string]any // of its settings
}

// newClaudeRig skips the test where there is no such program.
func newClaudeRig(t *testing.T) *claudeRig {
	t.Helper()
	path := os.Getenv("TOOLD_CLAUDE")
	if path == "" {
		t.Skip("TOOLD_CLAUDE does not name the program claude: npm install @anthropic-ai/claude-code, then TOOLD_CLAUDE=.../node_modules/.bin/claude (2.1.330 was tried)")
	}
	return &claudeRig{codexRig: newCodexRig(t), program: path, home: t.TempDir(), plugin: true}
}

// toold is the command that finds the daemon of the rig.
func (r *claudeRig) toold() []string {
	return []string{r.codexRig.program, "--state-dir", r.site.state, "--config", r.site.config}
}

// command is Claude Code in the workspace, set up as docs/connect.md says. Its home is its
// own: it changes nothing of the user's.
func (r *claudeRig) command(t *testing.T, m *claudeModel, args ...string) *exec.Cmd {
	t.Helper()
	settings, err := json.Marshal(map[string]any{"hooks": r.hooks})
	if err == nil {
		err = os.WriteFile(filepath.Join(r.home, "settings.json"), settings, 0o600)
	}
	args = append([]string{"-p", "--model", "claude-sonnet-4-5"}, args...)
	if r.plugin {
		dir := filepath.Join(r.home, "toold-plugin")
		files, problem := claude.Files(r.toold()...)
		err = errors.Join(err, problem)
		for name, text := range files {
			path := filepath.Join(dir, name)
			err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600))
		}
		args = append(args, "--plugin-dir", dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), r.program, args...)
	cmd.Dir = r.site.workspace
	// What is not on loopback it must not reach: there is no such proxy.
	const nowhere = "http://127.0.0.1:1"
	cmd.Env = []string{
		"HTTPS_PROXY=" + nowhere, "HTTP_PROXY=" + nowhere, "NO_PROXY=127.0.0.1,localhost", "ANTHROPIC_BASE_URL=" + m.URL, "ANTHROPIC_API_KEY=none",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
		"HOME=" + r.home, "CLAUDE_CONFIG_DIR=" + r.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8",
	}
	return cmd
}

// turn has Claude Code play a script to its end.
func (r *claudeRig) turn(t *testing.T, moves, sub []move) *claudeModel {
	t.Helper()
	m := newClaudeModel(t, moves, sub)
	out, err := r.command(t, m, "go on").CombinedOutput()
	if err != nil {
		t.Errorf("claude ended with %v: %.1000s", err, out)
	}
	return m
}

// expect checks texts in what the model saw of calls; moves count from 1.
func (m *claudeModel) expect(t *testing.T, sub bool, wants map[int][]string) {
	t.Helper()
	for n, texts := range wants {
		_, saw := m.saw(sub, n)
		for _, text := range texts {
			if !strings.Contains(saw, text) {
				t.Errorf("of move %d the model saw %.600q, without %q", n, saw, text)
			}
		}
	}
}

// claudeBash is a command of the model.
func claudeBash(script string) move {
	return move{tool: "Bash", args: map[string]any{"command": script, "description": "a step"}}
}

func (r *claudeRig) file(name string) string { return filepath.Join(r.site.workspace, name) }

func (r *claudeRig) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(r.file(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// background is a command that runs on.
func background(script string) move {
	v := claudeBash(script)
	v.args["run_in_background"] = true
	return v
}

func TestStockClaudeWorksInToold(t *testing.T) {
	t.Parallel()
	r := newClaudeRig(t)
	r.write(t, "hello.txt", "hello\n")
	r.write(t, ".env", "SECRET\n")
	path := func(name string, more ...string) map[string]any {
		args := map[string]any{"file_path": r.file(name)}
		for i := 0; i+1 < len(more); i += 2 {
			args[more[i]] = more[i+1]
		}
		return args
	}
	m := r.turn(t, []move{
		claudeBash("echo one; echo two >&2; exit 3"),
		claudeBash("touch made; git push origin main"),
		{tool: "Edit", args: path("hello.txt", "old_string", "hello", "new_string", "bye")},
		{tool: "Write", args: path("new/file.txt", "content", "first\n")},
		{tool: "Read", args: path("new/file.txt")},
		{tool: "Read", args: path(".env")},
		{tool: "Edit", args: path(".env", "old_string", "SECRET", "new_string", "x")},
		claudeBash("yes x | head -c 1000000; echo the end"),
		claudeBash(`printf '\377\376ok\n'`),
		background("echo begun; sleep 1000"),
		{tool: "mcp__toold__list_calls", args: map[string]any{}},
		claudeBash("touch inner; pwd"),
		{tool: "Agent", args: map[string]any{"description": "a part", "prompt": subagent, "subagent_type": "general-purpose", "run_in_background": false}},
	}, []move{claudeBash("echo from the subagent"), claudeBash("touch made; git push origin main")})
	m.expect(t, false, map[int][]string{
		1: {"Exit code: 3", "one\ntwo"}, 2: {"no-push", "use a branch"}, 3: {"updated successfully"}, 4: {"created successfully"}, 5: {"first"},
		6: {"secrets"}, 7: {"secrets"}, 8: {"the end", "left out", "bash_output"}, 9: {"\ufffd\ufffdok"}, 10: {"background-"}, 11: {"sleep 1000"}, 12: {r.site.workspace},
	})
	m.expect(t, true, map[int][]string{1: {"from the subagent"}, 2: {"no-push"}})
	r.nothingMade()
	for name, want := range map[string]string{"hello.txt": "bye\n", ".env": "SECRET\n", "new/file.txt": "first\n"} {
		if text, err := os.ReadFile(r.file(name)); string(text) != want {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	if !slices.Contains(m.tools, "mcp__toold__bash_kill") {
		t.Errorf("the model is offered %v", m.tools)
	}
	agent := r.dial(client.Options{})
	for n, sub := range []bool{false, true} {
		id, _ := m.saw(sub, 1+n)
		list, err := agent.ListMessages(t.Context(), message.ListMessages{CallID: id, Limit: 5})
		if err != nil || len(list.Messages) != 2 {
			t.Errorf("of %s the journal has %s, %v", id, list.Messages, err)
		}
	}
}

func TestStockClaudeWaitsForAPerson(t *testing.T) {
	t.Parallel()
	r := newClaudeRig(t)
	asked := make(chan string, 10)
	go func() {
		_ = r.approver.Approvals(t.Context(), client.ApprovalEvents{Requested: func(q message.ApprovalRequest) {
			asked <- string(q.ToolCall.Arguments)
			yes := len(asked) == 1
			if yes && elapse(t.Context(), 3*time.Second) != nil {
				return
			}
			if _, err := r.approver.Decide(t.Context(), client.Decision{ApprovalID: q.ID, Approve: yes, Reason: "make no directories"}); err != nil {
				t.Error(err)
			}
		}})
	}()
	// The second command is longer than one question of the mod may be.
	m := r.turn(t, []move{claudeBash("mkdir yes && echo made it"), claudeBash("sleep 23; echo woke up"), claudeBash("mkdir made")}, nil)
	m.expect(t, false, map[int][]string{1: {"made it"}, 2: {"woke up"}, 3: {"make no directories"}})
	r.nothingMade()
	if len(asked) != 2 {
		t.Errorf("%d questions were asked", len(asked))
	}
}

// When its user interrupts Claude Code, the command ends.
func TestStockClaudeIsInterrupted(t *testing.T) {
	t.Parallel()
	r := newClaudeRig(t)
	m := newClaudeModel(t, []move{claudeBash("touch started; sleep 1000; touch made")}, nil)
	cmd := r.command(t, m, "--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
	in, err := cmd.StdinPipe()
	if err == nil {
		cmd.Stdout = io.Discard
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { in.Close(); _ = cmd.Wait() }()
	say := func(line string) {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	say(`{"type":"user","message":{"role":"user","content":"go on"}}`)
	eventually(t, "the command runs", func() bool { _, err := os.Stat(r.file("started")); return err == nil })
	say(`{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}`)
	agent := r.dial(client.Options{})
	eventually(t, "the command ends", func() bool {
		calls, err := agent.ListCalls(t.Context(), false)
		return err == nil && len(calls) == 0
	})
	r.nothingMade()
}

// Where toold does not answer, Claude Code must not run anything by itself.
func TestStockClaudeRunsNothingWithoutToold(t *testing.T) {
	t.Parallel()
	r := newClaudeRig(t)
	moves := []move{claudeBash("touch made"), {tool: "Write", args: map[string]any{"file_path": r.file("made"), "content": "x"}}}
	tokens := filepath.Join(r.site.state, "tokens", "agent")
	token, err := os.ReadFile(tokens)
	if err == nil {
		err = os.WriteFile(tokens, []byte("wrong\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.turn(t, moves, nil).expect(t, false, map[int][]string{1: {"toold"}, 2: {"toold"}})
	if err := errors.Join(os.WriteFile(tokens, token, 0o600), r.daemon.stop(syscall.SIGTERM)); err != nil {
		t.Fatal(err)
	}
	r.turn(t, moves, nil).expect(t, false, map[int][]string{1: {"no daemon"}, 2: {"no daemon"}})
	program := r.codexRig.program
	r.codexRig.program = filepath.Join(r.home, "missing")
	r.turn(t, moves, nil).expect(t, false, map[int][]string{1: {"toold cannot be asked"}, 2: {"toold cannot be asked"}})
	r.codexRig.program = program
	r.nothingMade()
}

// When the daemon is killed the command ends, and the model learns that it may have run.
func TestStockClaudeLosesToold(t *testing.T) {
	t.Parallel()
	r := newClaudeRig(t)
	killed := make(chan error, 1)
	go func() {
		for elapse(t.Context(), 20*time.Millisecond) == nil {
			if _, err := os.Stat(r.file("started")); err == nil {
				killed <- r.daemon.stop(syscall.SIGKILL)
				return
			}
		}
	}()
	m := r.turn(t, []move{claudeBash("touch started; sleep 1000; touch made"), claudeBash("touch made")}, nil)
	if err := <-killed; err != nil {
		t.Log(err)
	}
	m.expect(t, false, map[int][]string{1: {"toold was lost", "toold show"}, 2: {"no daemon"}})
	r.nothingMade()
}
