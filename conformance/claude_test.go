//go:build linux

package conformance

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/interop/claude"
)

// claudeCode is stock Claude Code, the program claude of the npm package
// @anthropic-ai/claude-code, a run of `claude -p` each time.
type claudeCode struct {
	*agentRig
	program string
	home    string
	toold   []string       // that the plugin starts
	plugin  bool           // else it has no plugin
	hooks   map[string]any // of its settings
}

func newClaude(t *testing.T) *claudeCode {
	t.Helper()
	program := skipWithout(t, "TOOLD_CLAUDE", "the program claude (2.1.330 was tried)")
	r := newAgentRig(t)
	return &claudeCode{agentRig: r, program: program, home: t.TempDir(), toold: r.command(), plugin: true}
}

func (c *claudeCode) call(s deed) (move, string) {
	switch {
	case s.follow:
		return move{"mcp__toold__bash_output", map[string]any{"call_id": "$", "wait": 5000}}, ""
	case s.subagent:
		return move{"Agent", map[string]any{"description": "a part", "prompt": subagent, "subagent_type": "general-purpose", "run_in_background": false}}, ""
	case s.await:
		return move{}, "a subagent of Claude Code is waited for when it is called"
	case s.background != "":
		return move{"Bash", map[string]any{"command": s.background, "description": "a step", "run_in_background": true}}, ""
	case s.edit != nil && s.edit.from == "":
		return move{"Write", map[string]any{"file_path": c.file(s.edit.name), "content": s.edit.to + "\n"}}, ""
	case s.edit != nil:
		return move{"Edit", map[string]any{"file_path": c.file(s.edit.name), "old_string": s.edit.from, "new_string": s.edit.to}}, ""
	}
	return claudeBash(s.run), ""
}

func (c *claudeCode) lost() (killed, without []string) {
	return []string{"toold was lost", "toold show"}, []string{"no daemon"}
}

func claudeBash(script string) move {
	return move{"Bash", map[string]any{"command": script, "description": "a step"}}
}

// play sets Claude Code up as docs/connect.md says. Its home is its own: it changes nothing
// of the user's.
func (c *claudeCode) play(t *testing.T, interrupt <-chan struct{}) {
	t.Helper()
	settings, err := json.Marshal(map[string]any{"hooks": c.hooks})
	if err == nil {
		err = os.WriteFile(filepath.Join(c.home, "settings.json"), settings, 0o600)
	}
	args := []string{"-p", "--model", "claude-sonnet-4-5", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"}
	if c.plugin {
		dir := filepath.Join(c.home, "toold-plugin")
		files, problem := claude.Files(c.toold...)
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
	cmd := exec.CommandContext(t.Context(), c.program, args...)
	cmd.Dir = c.site.workspace
	cmd.Env = environment(c.home, "CLAUDE_CONFIG_DIR="+c.home, "ANTHROPIC_BASE_URL="+c.model.URL, "ANTHROPIC_API_KEY=none",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1")
	var problems strings.Builder
	cmd.Stderr = &problems
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err = errors.Join(err, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	over := make(chan string)
	go func() {
		defer close(over)
		last := ""
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				over <- last
				return
			}
			if last = line; strings.Contains(line, `"type":"result"`) {
				in.Close()
			}
		}
	}()
	fmt.Fprintln(in, `{"type":"user","message":{"role":"user","content":"go on"}}`)
	var last string
	select {
	case last = <-over:
	case <-interrupt:
		fmt.Fprintln(in, `{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}`)
		last = <-over
	}
	if err := cmd.Wait(); err != nil && interrupt == nil {
		t.Errorf("claude ended with %v: %.1000s %.1000s", err, last, &problems)
	}
}

// Results that only Claude Code shows so.
func TestStockClaudeShowsResults(t *testing.T) {
	t.Parallel()
	c := newClaude(t)
	c.write(t, ".env", "SECRET\n")
	read := func(name string) move { return move{"Read", map[string]any{"file_path": c.file(name)}} }
	create, _ := c.call(deed{edit: &edit{"new/file.txt", "", "first"}})
	c.model.script([]move{
		create, read("new/file.txt"), read(".env"), claudeBash("yes x | head -c 1000000"), claudeBash(`printf '\377\376ok\n'`), claudeBash("touch inner; pwd"),
		claudeBash("sleep 23; echo woke up"), // longer than toold is waited for at once
	}, nil)
	c.play(t, nil)
	c.model.expect(
		t, []string{"created successfully"}, []string{"first"}, []string{"secrets"}, []string{"left out", "bash_output"}, []string{"\ufffd\ufffdok"},
		[]string{c.site.workspace}, []string{"woke up"},
	)
	if _, ok := c.model.tools["mcp__toold__bash_kill"]; !ok {
		t.Errorf("the model is offered %v", c.model.tools)
	}
}

// Where toold cannot be asked, Claude Code must not run anything by itself.
func TestStockClaudeRunsNothingWithoutToold(t *testing.T) {
	t.Parallel()
	c := newClaude(t)
	create, _ := c.call(deed{edit: &edit{"made", "", "x"}})
	moves := []move{claudeBash("touch made"), create}
	t.Run("wrong token", func(t *testing.T) {
		c.wrongToken(t)
		c.model.script(moves, nil)
		c.play(t, nil)
		c.model.expect(t, []string{"toold"}, []string{"toold"})
	})
	t.Run("no program", func(t *testing.T) {
		c.toold = []string{filepath.Join(c.home, "missing")}
		c.model.script(moves, nil)
		c.play(t, nil)
		c.model.expect(t, []string{"toold cannot be asked"}, []string{"toold cannot be asked"})
	})
	c.nothingMade()
}
